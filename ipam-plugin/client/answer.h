/* SPDX-License-Identifier: Apache-2.0 */
/* What this program says by itself, without the agent. */
#ifndef BERTH_ANSWER_H
#define BERTH_ANSWER_H

#include <stddef.h>

/* Error codes of the CNI specification, section "Error". */
enum {
  CNI_BAD_ENVIRONMENT = 4,
  CNI_IO_FAILURE = 5,
  CNI_DECODING_FAILURE = 6,
  CNI_TRY_AGAIN_LATER = 11,
  CNI_PLUGIN_NOT_AVAILABLE = 50
};

enum { MESSAGE_LIMIT = 512 };

/*
 * A message put together piece by piece and cut at MESSAGE_LIMIT bytes. Runtimes parse error texts for "not found"
 * and "no such file or directory" and then drop a release, so the texts of errno (strerror) never go in here.
 */
struct message {
  char text[MESSAGE_LIMIT + 1];
  size_t length;
};

void message_put(struct message *message, const char *words);
void message_put_number(struct message *message, unsigned long number);
/* Why a system call failed, in our words. */
void message_put_errno(struct message *message, int error);

/* Prints a CNI error object on stdout; returns the exit status, 1. */
int answer_error(int code, const struct message *message);
/* Prints what VERSION answers; returns the exit status. */
int answer_version(void);
/* Prints what somebody who runs the program by hand wants to know on stderr; returns the exit status. */
int answer_about(void);

#endif
