/* SPDX-License-Identifier: Apache-2.0 */
#include "bounded.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Rounded up, so that a wait never ends before its deadline and spins. */
static int remaining_ms(uint64_t deadline_ns) {
  const uint64_t now = now_ns();
  if (now >= deadline_ns) return 0;
  const uint64_t ms = (deadline_ns - now + 999999u) / 1000000u;
  return ms > INT_MAX ? INT_MAX : (int)ms;
}

int wait_for(int fd, short events, uint64_t deadline_ns) {
  struct pollfd watched = {.fd = fd, .events = events, .revents = 0};
  for (;;) {
    const int ready = poll(&watched, 1, remaining_ms(deadline_ns));
    if (ready > 0) return watched.revents;
    if (ready == 0) return 0;
    if (errno != EINTR) return -1;
  }
}

enum bounded read_to_end(int fd, unsigned char *into, size_t limit, uint64_t deadline_ns, size_t *length) {
  *length = 0;
  for (;;) {
    const int ready = wait_for(fd, POLLIN, deadline_ns);
    if (ready == 0) return BOUNDED_TIMED_OUT;
    if (ready < 0) return BOUNDED_FAILED;
    const ssize_t got = read(fd, into + *length, limit + 1 - *length);
    if (got == 0) return BOUNDED_DONE;
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return BOUNDED_FAILED;
    }
    *length += (size_t)got;
    if (*length > limit) return BOUNDED_TOO_LONG;
  }
}

enum bounded write_all(int fd, const void *bytes, size_t length, uint64_t deadline_ns) {
  const unsigned char *next = bytes;
  while (length > 0) {
    const int ready = wait_for(fd, POLLOUT, deadline_ns);
    if (ready == 0) return BOUNDED_TIMED_OUT;
    if (ready < 0) return BOUNDED_FAILED;
    /* A pipe that polls writable takes PIPE_BUF bytes without blocking; more might block for ever. */
    const ssize_t put = write(fd, next, length < PIPE_BUF ? length : PIPE_BUF);
    if (put < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return BOUNDED_FAILED;
    }
    next += put;
    length -= (size_t)put;
  }
  return BOUNDED_DONE;
}
