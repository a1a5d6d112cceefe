/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs programs as a container runtime does and takes the time of each, from before posix_spawn until after waitpid,
 * on CLOCK_MONOTONIC. Nothing else happens meanwhile: the plan is read before the first run, the results are printed
 * after the last one.
 *
 * stdin, one line each, fields separated by tabs:
 *   parallel N                              so many of the following runs at once; waits for the earlier ones first
 *   run TAG PROGRAM INPUT [NAME=VALUE ...]  INPUT is a file that the program gets through a pipe on its stdin
 * stdout, one line for each run in the order of the plan:
 *   TAG START_NS END_NS STATUS WHAT IT PRINTED, with blanks for tabs and ends of lines
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a pipe takes without anybody reading it. */
enum { PIPE_ROOM = 65536, MOST_AT_ONCE = 256, MOST_FIELDS = 64 };

struct run {
  char *tag;
  char *program;
  char *input;
  size_t input_length;
  char *env[MOST_FIELDS];
  unsigned at_once; /* not 0: this is no run but a line `parallel` */
  pid_t pid;
  int output;
  uint64_t start_ns, end_ns;
  int status;
  char *printed;
};

static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "bench driver: %s: %s\n", what, strerror(errno));
  exit(2);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static char *read_all(int fd, size_t *length) {
  size_t room = 4096;
  char *bytes = malloc(room + 1);
  *length = 0;
  for (;;) {
    if (bytes == NULL) give_up("memory");
    const ssize_t got = read(fd, bytes + *length, room - *length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) give_up("read");
    if (got == 0) break;
    *length += (size_t)got;
    if (*length == room) bytes = realloc(bytes, (room *= 2) + 1);
  }
  bytes[*length] = '\0';
  return bytes;
}

/* Most runs of a plan share their input. */
static void load_input(struct run *run, const char *path) {
  static char *last_path, *last_bytes;
  static size_t last_length;
  if (last_path == NULL || strcmp(last_path, path) != 0) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) give_up(path);
    last_bytes = read_all(fd, &last_length);
    close(fd);
    last_path = strdup(path);
    if (last_length > PIPE_ROOM) {
      errno = EFBIG;
      give_up(path);
    }
  }
  run->input = last_bytes;
  run->input_length = last_length;
}

static void parse(struct run *run, char *line) {
  char *fields[MOST_FIELDS] = {NULL};
  size_t count = 0;
  for (char *field; (field = strsep(&line, "\t")) != NULL && count < MOST_FIELDS - 1;) fields[count++] = field;
  if (count == 2 && strcmp(fields[0], "parallel") == 0) {
    run->at_once = (unsigned)atoi(fields[1]);
    if (run->at_once > 0 && run->at_once <= MOST_AT_ONCE) return;
  } else if (count >= 4 && strcmp(fields[0], "run") == 0) {
    run->tag = fields[1];
    run->program = fields[2];
    load_input(run, fields[3]);
    memcpy(run->env, fields + 4, (count - 4) * sizeof fields[0]);
    return;
  }
  errno = EINVAL;
  give_up(fields[0]);
}

static void start(struct run *run) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) give_up("pipe");
  if (write(in[1], run->input, run->input_length) != (ssize_t)run->input_length) give_up("write");
  close(in[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  char *const argv[] = {run->program, NULL};
  run->start_ns = now_ns();
  const int error = posix_spawn(&run->pid, run->program, &actions, NULL, argv, run->env);
  if (error != 0) {
    errno = error;
    give_up(run->program);
  }
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  run->output = out[0];
}

/* The next child to end: which of the runs it is. */
static void finish(struct run *const *running, unsigned *count, struct run **slots) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, 0)) < 0) {
    if (errno != EINTR) give_up("waitpid");
  }
  const uint64_t end_ns = now_ns();
  for (unsigned i = 0; i < *count; i++) {
    struct run *const run = running[i];
    if (run->pid != pid) continue;
    run->end_ns = end_ns;
    run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    size_t length;
    run->printed = read_all(run->output, &length);
    close(run->output);
    slots[i] = slots[--*count];
    return;
  }
}

static void run_all(struct run *runs, size_t count) {
  struct run *running[MOST_AT_ONCE];
  unsigned active = 0, at_once = 1;
  for (size_t i = 0; i < count; i++) {
    const unsigned limit = runs[i].at_once > 0 ? 1 : at_once;
    while (active >= limit) finish(running, &active, running);
    if (runs[i].at_once > 0) {
      at_once = runs[i].at_once;
    } else {
      start(&runs[i]);
      running[active++] = &runs[i];
    }
  }
  while (active > 0) finish(running, &active, running);
}

static void print(const struct run *run) {
  for (char *at = run->printed; *at != '\0'; at++) {
    if (*at == '\t' || *at == '\n' || *at == '\r') *at = ' ';
  }
  printf("%s\t%llu\t%llu\t%d\t%s\n", run->tag, (unsigned long long)run->start_ns, (unsigned long long)run->end_ns,
         run->status, run->printed);
}

int main(void) {
  size_t length, count = 0, room = 1024;
  char *plan = read_all(STDIN_FILENO, &length);
  struct run *runs = calloc(room, sizeof *runs);
  for (char *line; (line = strsep(&plan, "\n")) != NULL;) {
    if (*line == '\0') continue;
    if (count == room) {
      runs = realloc(runs, 2 * room * sizeof *runs);
      if (runs != NULL) memset(runs + room, 0, room * sizeof *runs);
      room *= 2;
    }
    if (runs == NULL) give_up("memory");
    parse(&runs[count++], line);
  }
  run_all(runs, count);
  for (size_t i = 0; i < count; i++) {
    if (runs[i].at_once == 0) print(&runs[i]);
  }
  return 0;
}
