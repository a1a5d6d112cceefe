/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <errno.h>
#include <limits.h>
#include <sanitizer/asan_interface.h>
#include <string.h>

/* Descriptors of this world, beside 0, 1 and 2. */
enum { SOCKET = 70, FOLDER = 71, RELEASE = 72, BOOT = 73 };
/* Later transfers come whole, or 4 MiB byte by byte would take all the time there is. */
enum { IN_PIECES = 48, HEARD_BY_THE_DEAF = 300, FEW = 4 };
static const uint64_t A_MINUTE_NS = 60000000000u;

static unsigned char sent_bytes[REQUEST_CAPACITY + 2];
static unsigned char out_bytes[RESPONSE_CAPACITY + 2];
static unsigned char file_bytes[REQUEST_CAPACITY + 2];

struct world world;

void require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "violated: %s\n", what);
  abort();
}

void world_begin(void) {
  world = (struct world){
      .now = 1000000000u,
      .sent = {.bytes = sent_bytes, .capacity = sizeof sent_bytes},
      .out = {.bytes = out_bytes, .capacity = sizeof out_bytes},
      .file = {.bytes = file_bytes, .capacity = sizeof file_bytes},
  };
}

static int fail(int error) {
  errno = error;
  return -1;
}

static bool interrupted(void) {
  const unsigned number = world.transfers++;
  return number < 16 && (world.interrupted >> number & 1u) != 0;
}

static size_t piece_of(size_t length) {
  return world.piece != 0 && world.transfers < IN_PIECES && length > world.piece ? world.piece : length;
}

static size_t left_in(const struct source *source) {
  return source->length + source->more - source->taken;
}

static ssize_t take(struct source *source, void *into, size_t length) {
  require(length > 0, "there is always room to read into");
  require(__asan_region_is_poisoned(into, length) == NULL, "there is room for all that is asked for");
  if (interrupted()) return fail(EINTR);
  const size_t left = left_in(source);
  if (left == 0 && source->breaks) return fail(EIO);
  if (left == 0 && source->hangs) return fail(EAGAIN);
  const size_t got = piece_of(length < left ? length : left);
  const size_t real = source->taken < source->length ? source->length - source->taken : 0;
  const size_t copied = got < real ? got : real;
  if (copied > 0) memcpy(into, source->bytes + source->taken, copied);
  memset((unsigned char *)into + copied, 'x', got - copied);
  source->taken += got;
  return (ssize_t)got;
}

static ssize_t put(struct sink *sink, const void *bytes, size_t length) {
  if (interrupted()) return fail(EINTR);
  const size_t got = piece_of(length);
  require(got <= sink->capacity - sink->length, "no more is sent than there is");
  memcpy(sink->bytes + sink->length, bytes, got);
  sink->length += got;
  return (ssize_t)got;
}

int fuzz_clock_gettime(clockid_t clock, struct timespec *now) {
  require(clock == CLOCK_MONOTONIC, "the clock does not leap");
  world.now += 1000;
  now->tv_sec = (time_t)(world.now / 1000000000u);
  now->tv_nsec = (long)(world.now % 1000000000u);
  return 0;
}

static size_t room_in_socket(void) {
  if (!world.deaf) return SIZE_MAX;
  return world.sent.length < HEARD_BY_THE_DEAF ? HEARD_BY_THE_DEAF - world.sent.length : 0;
}

static short ready(int fd) {
  const struct source *const source = fd == SOCKET ? &world.answer : &world.input;
  const bool ended = !source->hangs || source->breaks || (fd == SOCKET && world.hung_up);
  const short readable = left_in(source) > 0 || ended ? POLLIN : 0;
  if (fd == STDIN_FILENO) return readable;
  if (fd == SOCKET) return (short)(readable | (room_in_socket() > 0 ? POLLOUT : 0));
  return fd == STDOUT_FILENO && world.stuck && world.out.length >= world.readable ? 0 : POLLOUT;
}

int fuzz_poll(struct pollfd *watched, nfds_t count, int timeout) {
  require(count == 1 && timeout >= 0, "every wait has an end");
  require(watched->fd <= STDERR_FILENO || watched->fd == SOCKET, "only what is open is waited for");
  watched->revents = watched->fd < 0 ? 0 : (short)(ready(watched->fd) & watched->events);
  if (watched->revents != 0) return 1;
  world.now += (uint64_t)timeout * 1000000u;
  return 0;
}

ssize_t fuzz_read(int fd, void *into, size_t length) {
  if (fd == BOOT) {
    static const char id[] = "11111111-2222-3333-4444-555555555555\n";
    require(length < sizeof id, "no more than an id is read");
    memcpy(into, id, length);
    return world.transfers % 3 == 1 ? (ssize_t)length / 2 : (ssize_t)length;
  }
  require(fd == STDIN_FILENO, "only stdin is read");
  return take(&world.input, into, length);
}

static ssize_t print(const void *bytes, size_t length) {
  if (world.out.length + length <= world.readable) return put(&world.out, bytes, length);
  const size_t room = world.readable - world.out.length;
  if (room > 0) return put(&world.out, bytes, room);
  require(!world.stuck, "nothing is written where it would block");
  return fail(EPIPE);
}

static int disk(void) {
  if (world.disk_error == 0 || world.disk_works > 0) {
    if (world.disk_works > 0) world.disk_works--;
    return 0;
  }
  const int error = world.disk_error;
  if (error == ENOENT) world.disk_error = 0; /* what is not there is made */
  return fail(error);
}

ssize_t fuzz_write(int fd, const void *bytes, size_t length) {
  require(length > 0, "no write is empty");
  if (fd == RELEASE) return disk() == 0 ? put(&world.file, bytes, length) : -1;
  require(fd == STDOUT_FILENO || fd == STDERR_FILENO, "only stdout and stderr are printed to");
  require(length <= PIPE_BUF, "no write to a pipe may block");
  return fd == STDOUT_FILENO ? print(bytes, length) : (ssize_t)length;
}

int fuzz_socket(int domain, int type, int protocol) {
  require(domain == AF_UNIX && type == (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK) && protocol == 0, "the socket");
  return SOCKET;
}

/* Every connection is with another agent, which has heard nothing yet. */
static int connected(void) {
  world.sent.length = 0;
  world.answer.taken = 0;
  world.hung_up = world.connections < world.hang_ups;
  /* 4 MiB again and again would take all the time there is: patience ends. */
  if (++world.connections > FEW) world.now += A_MINUTE_NS;
  return 0;
}

int fuzz_connect(int fd, const struct sockaddr *address, socklen_t length) {
  require(fd == SOCKET && address->sa_family == AF_UNIX && length > 2, "the address is a path");
  require(memchr(address->sa_data, '\0', length - sizeof address->sa_family) != NULL, "that ends");
  if (interrupted()) return fail(EINTR);
  if (world.knocks > 0) {
    if (world.knocks != UINT_MAX) world.knocks--;
    return fail(EAGAIN);
  }
  if (world.connect_error != 0 && world.absences > 0) {
    if (world.absences != UINT_MAX) world.absences--;
    return fail(world.connect_error);
  }
  return connected();
}

int fuzz_getsockopt(int fd, int level, int name, void *value, socklen_t *length) {
  if (fd < 0 || level != SOL_SOCKET || name != SO_PEERCRED || *length != sizeof(struct ucred)) return fail(EINVAL);
  *(struct ucred *)value = (struct ucred){.pid = 1, .uid = geteuid(), .gid = getegid()};
  return 0;
}

int fuzz_access(const char *path, int mode) {
  require(mode == F_OK && path[strlen(path) - 1] == '/', "a folder is looked for");
  return world.folder_missing ? fail(ENOENT) : 0;
}

ssize_t fuzz_send(int fd, const void *bytes, size_t length, int flags) {
  require(fd == SOCKET && flags == MSG_NOSIGNAL && length > 0, "a client that is written to must not kill it");
  const size_t room = room_in_socket();
  if (room == 0) return fail(EAGAIN);
  return put(&world.sent, bytes, length < room ? length : room);
}

ssize_t fuzz_recv(int fd, void *into, size_t length, int flags) {
  require(fd == SOCKET && flags == 0, "only the agent is listened to");
  if (world.hung_up) return 0;
  return take(&world.answer, into, length);
}

int fuzz_fcntl(int fd, int command, ...) {
  require(fd == SOCKET && command == F_DUPFD_CLOEXEC, "only the socket is moved");
  return SOCKET;
}

int fuzz_close(int fd) {
  require(fd == SOCKET || fd == FOLDER || fd == RELEASE || fd == BOOT, "only what it has opened is closed");
  return fd == RELEASE ? disk() : 0;
}

pid_t fuzz_getppid(void) {
  if (world.caller_sees == 0) return 1;
  world.caller_sees--;
  return 4711;
}

int fuzz_mkdir(const char *path, mode_t mode) {
  require(mode == 0700, "nobody else may look");
  require(strlen(path) < PATH_MAX, "the path is bounded");
  return disk();
}

int fuzz_open(const char *path, int flags, ...) {
  if (strncmp(path, "/proc/", 6) == 0) {
    require(strcmp(path, "/proc/sys/kernel/random/boot_id") == 0 && flags == (O_RDONLY | O_CLOEXEC), "the boot is read");
    return world.transfers % 3 == 0 ? fail(EACCES) : BOOT;
  }
  require((flags & (O_CREAT | O_NOFOLLOW | O_DIRECTORY)) == (O_NOFOLLOW | O_DIRECTORY), "a folder, no link");
  const size_t length = strlen(path);
  require(length < PATH_MAX, "the path is bounded");
  memcpy(world.folder, path, length + 1);
  return disk() == 0 ? FOLDER : -1;
}

int fuzz_openat(int folder, const char *path, int flags, ...) {
  require(folder == FOLDER && path[0] == '.' && strchr(path, '/') == NULL, "it waits under a hidden name");
  require(!world.of_others, "where nobody else may write");
  require((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL), "nothing is overwritten");
  return disk() == 0 ? RELEASE : -1;
}

int fuzz_fstat(int fd, struct stat *found) {
  require(fd == FOLDER, "it is looked whose the folder is");
  *found = (struct stat){.st_mode = S_IFDIR | 0700, .st_uid = geteuid()};
  if (world.of_others && world.transfers % 2 == 0) found->st_uid = geteuid() + 1;
  else if (world.of_others) found->st_mode |= S_IWOTH;
  return 0;
}

int fuzz_fsync(int fd) {
  require(fd == RELEASE || fd == FOLDER, "what was written is synced");
  return disk();
}

int fuzz_renameat(int folder, const char *from, int other, const char *to) {
  require(folder == FOLDER && other == FOLDER && strcmp(from + 1, to) == 0, "it gets its own name");
  if (disk() != 0) return -1;
  world.written = true;
  return 0;
}

int fuzz_unlinkat(int folder, const char *path, int flags) {
  require(folder == FOLDER && path[0] == '.' && flags == 0, "only what was not finished is removed");
  return 0;
}
