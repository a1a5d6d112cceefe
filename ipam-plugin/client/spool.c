/* SPDX-License-Identifier: Apache-2.0 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bounded.h"

static const char FOLDER[] = "/spool";
static const char BOOT_ID[] = "/proc/sys/kernel/random/boot_id";
enum { BOOT_ID_LENGTH = 36 };

/* dirname(socket_path) + "/spool"; false when that is too long. */
static bool spool_folder(const char *socket_path, char *folder) {
  const char *slash = strrchr(socket_path, '/');
  const char *parent = slash == NULL ? "." : socket_path;
  const size_t length = slash == NULL ? 1 : (size_t)(slash - socket_path);
  if (length + sizeof FOLDER > PATH_MAX) return false;
  memcpy(folder, parent, length);
  memcpy(folder + length, FOLDER, sizeof FOLDER);
  return true;
}

/* mkdir -p: a release may come before the agent has ever run. */
static int make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    const int made = mkdir(path, 0700);
    *slash = '/';
    if (made != 0 && errno != EEXIST) return errno;
  }
  return mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
}

/* By the rules of system/private-folder.ts. */
static bool is_ours(int folder) {
  struct stat found;
  if (fstat(folder, &found) != 0) return false;
  if (found.st_uid != geteuid() && found.st_uid != 0) return false;
  return (found.st_mode & S_IWOTH) == 0 && ((found.st_mode & S_IWGRP) == 0 || found.st_gid == 0);
}

static int open_folder(char *path, int *folder) {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  *folder = open(path, flags);
  if (*folder >= 0) return 0;
  if (errno != ENOENT) return errno;
  const int made = make_folders(path);
  if (made != 0) return made;
  *folder = open(path, flags);
  return *folder >= 0 ? 0 : errno;
}

static int write_whole(int fd, const unsigned char *bytes, size_t length) {
  while (length > 0) {
    const ssize_t put = write(fd, bytes, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes += put;
    length -= (size_t)put;
  }
  return 0;
}

/* "-" and the id of this boot, whose clock the frame's stamp is of; empty where it cannot be read. */
static void read_boot(char boot[BOOT_ID_LENGTH + 2]) {
  boot[0] = '\0';
  const int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t got = read(fd, boot + 1, BOOT_ID_LENGTH);
  close(fd);
  if (got != BOOT_ID_LENGTH) return;
  boot[0] = '-';
  boot[BOOT_ID_LENGTH + 1] = '\0';
}

/* Writes the frame under a name that the agent ignores and gives it its own name when it is safe on disk. */
static int write_release(int folder, const unsigned char *frame, size_t length) {
  char waiting[128];
  char boot[BOOT_ID_LENGTH + 2];
  const char *const named = waiting + 1;
  read_boot(boot);
  snprintf(waiting, sizeof waiting, ".%020llu-%ld%s.del", (unsigned long long)now_ns(), (long)getpid(), boot);
  const int fd = openat(folder, waiting, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = write_whole(fd, frame, length);
  if (error == 0 && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && renameat(folder, waiting, folder, named) != 0) error = errno;
  if (error != 0) {
    unlinkat(folder, waiting, 0);
    return error;
  }
  return fsync(folder) == 0 ? 0 : errno;
}

int spool_release(const char *socket_path, const unsigned char *frame, size_t length) {
  char path[PATH_MAX];
  int folder;
  if (!spool_folder(socket_path, path)) return ENAMETOOLONG;
  const int opened = open_folder(path, &folder);
  if (opened != 0) return opened;
  const int error = is_ours(folder) ? write_release(folder, frame, length) : SPOOL_OF_OTHERS;
  close(folder);
  return error;
}
