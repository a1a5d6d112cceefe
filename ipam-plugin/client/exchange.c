/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bounded.h"

/* How long to wait before knocking again on a socket whose queue is full. */
static const uint64_t KNOCK_AGAIN_NS = 2000000;

static enum exchange connect_failure(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return EXCHANGE_NO_SOCKET;
    case ECONNREFUSED:
      return EXCHANGE_NOBODY_LISTENS;
    case EACCES:
    case EPERM:
      return EXCHANGE_FORBIDDEN;
    default:
      return EXCHANGE_UNREACHABLE;
  }
}

/* A caller that closed stdout must not have our answer written into the socket that got its number. */
static int open_socket(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return higher;
}

/* Whoever listens gives this caller's addresses: nobody but this user and root. The kernel says who it is. */
static bool is_trusted(int fd) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == 0 || peer.uid == geteuid();
}

enum exchange agent_connect(const char *path, uint64_t deadline_ns, int *fd) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(path);
  if (length >= sizeof address.sun_path) return EXCHANGE_PATH_TOO_LONG;
  memcpy(address.sun_path, path, length + 1);
  *fd = open_socket();
  if (*fd < 0) return EXCHANGE_UNREACHABLE;
  while (connect(*fd, (const struct sockaddr *)&address, sizeof address) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return connect_failure(errno);
    const uint64_t now = now_ns();
    if (now >= deadline_ns) return EXCHANGE_TIMED_OUT;
    wait_for(-1, 0, now + KNOCK_AGAIN_NS);
  }
  return is_trusted(*fd) ? EXCHANGE_ANSWERED : EXCHANGE_FOREIGN;
}

void agent_hang_up(int fd) {
  if (fd >= 0) close(fd);
}

bool agent_was_here(const char *path) {
  char folder[sizeof ((struct sockaddr_un *)NULL)->sun_path];
  const char *const slash = strrchr(path, '/');
  if (slash == NULL) return true;
  const size_t length = (size_t)(slash - path) + 1;
  if (length >= sizeof folder) return false;
  memcpy(folder, path, length);
  folder[length] = '\0';
  return access(folder, F_OK) == 0;
}

bool exchange_found_no_agent(enum exchange outcome) {
  return outcome == EXCHANGE_NO_SOCKET || outcome == EXCHANGE_NOBODY_LISTENS || outcome == EXCHANGE_CLOSED_EARLY;
}

/* An agent that hangs up, or answers before it has read everything, may have answered all the same: go and read. */
static enum exchange send_request(int fd, const unsigned char *frame, size_t length, uint64_t deadline_ns) {
  while (length > 0) {
    const ssize_t sent = send(fd, frame, length, MSG_NOSIGNAL);
    if (sent >= 0) {
      frame += sent;
      length -= (size_t)sent;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return EXCHANGE_ANSWERED;
    const int ready = wait_for(fd, POLLIN | POLLOUT, deadline_ns);
    if (ready == 0) return EXCHANGE_TIMED_OUT;
    if (ready < 0) return EXCHANGE_UNREACHABLE;
    if ((ready & POLLIN) != 0) return EXCHANGE_ANSWERED;
  }
  return EXCHANGE_ANSWERED;
}

static enum exchange receive_answer(int fd, uint64_t deadline_ns, unsigned char *bytes, struct response *response) {
  size_t length = 0;
  for (;;) {
    const int ready = wait_for(fd, POLLIN, deadline_ns);
    if (ready == 0) return EXCHANGE_TIMED_OUT;
    if (ready < 0) return EXCHANGE_UNREACHABLE;
    const ssize_t got = recv(fd, bytes + length, RESPONSE_CAPACITY + 1 - length, 0);
    if (got == 0) return EXCHANGE_CLOSED_EARLY;
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return EXCHANGE_CLOSED_EARLY;
    }
    length += (size_t)got;
    const enum response_state state = response_parse(bytes, length, response);
    if (state == RESPONSE_COMPLETE) return EXCHANGE_ANSWERED;
    if (state == RESPONSE_GARBAGE) return EXCHANGE_GARBAGE;
  }
}

enum exchange agent_ask(int fd, const unsigned char *frame, size_t frame_length, uint64_t deadline_ns,
                        unsigned char *bytes, struct response *response) {
  const enum exchange sent = send_request(fd, frame, frame_length, deadline_ns);
  return sent == EXCHANGE_ANSWERED ? receive_answer(fd, deadline_ns, bytes, response) : sent;
}

bool agent_acknowledge(int fd) {
  const unsigned char acknowledged = FRAME_ACKNOWLEDGED;
  ssize_t sent;
  do {
    sent = send(fd, &acknowledged, 1, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == 1;
}
