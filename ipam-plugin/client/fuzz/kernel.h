/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system that the client runs on when it is fuzzed: stdin, stdout, clock, agent and disk, all played by
 * kernel.c as a world says; client.c puts these functions in the place of the C library's. Nothing is waited for,
 * nothing is written to a disk, and a run can be repeated.
 */
#ifndef BERTH_FUZZ_KERNEL_H
#define BERTH_FUZZ_KERNEL_H

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../frame.h"

/* Bytes that somebody sends: these, and then `more` times 'x'. */
struct source {
  const unsigned char *bytes;
  size_t length;
  size_t more;
  size_t taken;
  bool hangs;  /* does not end after the last byte */
  bool breaks; /* fails there */
};

/* Bytes that somebody was sent. */
struct sink {
  unsigned char *bytes;
  size_t capacity;
  size_t length;
};

struct world {
  struct source input;
  struct source answer;
  int connect_error;
  unsigned knocks;         /* so many connects find the queue full */
  unsigned absences;       /* so many connects after those fail, and later ones do not; UINT_MAX: all */
  unsigned hang_ups;       /* so many connections are closed before the answer */
  bool folder_missing;     /* there is no folder of the socket */
  size_t piece;            /* what a transfer carries at most, of the first that there are; 0: everything */
  unsigned interrupted;    /* bit n: the n-th transfer is interrupted by a signal */
  bool deaf;               /* the agent reads only the first bytes */
  size_t readable;         /* so many bytes of stdout are read; then */
  bool stuck;              /* nobody reads and nobody goes, or everybody is gone */
  unsigned caller_sees;    /* so many looks find the caller alive */
  int disk_error;
  unsigned disk_works;     /* so many calls to the disk before that error */
  bool of_others;          /* somebody else may write to the folder of the spool */

  uint64_t now;
  unsigned transfers;
  unsigned connections;
  bool hung_up;            /* the connection of this moment is closed before the answer */
  struct sink sent;
  struct sink out;
  struct sink file;
  char folder[8192]; /* where the spool was opened */
  bool written;      /* the file has its name */
};

extern struct world world;

/* Forgets what happened in the world before. */
void world_begin(void);
void require(bool holds, const char *what);

int berth_main(void);
int fuzz_clock_gettime(clockid_t clock, struct timespec *now);
int fuzz_poll(struct pollfd *watched, nfds_t count, int timeout);
ssize_t fuzz_read(int fd, void *into, size_t length);
ssize_t fuzz_write(int fd, const void *bytes, size_t length);
int fuzz_socket(int domain, int type, int protocol);
int fuzz_connect(int fd, const struct sockaddr *address, socklen_t length);
int fuzz_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
ssize_t fuzz_send(int fd, const void *bytes, size_t length, int flags);
ssize_t fuzz_recv(int fd, void *into, size_t length, int flags);
int fuzz_fcntl(int fd, int command, ...);
int fuzz_access(const char *path, int mode);
int fuzz_close(int fd);
pid_t fuzz_getppid(void);
int fuzz_mkdir(const char *path, mode_t mode);
int fuzz_open(const char *path, int flags, ...);
int fuzz_openat(int folder, const char *path, int flags, ...);
int fuzz_fsync(int fd);
int fuzz_fstat(int fd, struct stat *found);
int fuzz_renameat(int folder, const char *from, int other, const char *to);
int fuzz_unlinkat(int folder, const char *path, int flags);

#endif
