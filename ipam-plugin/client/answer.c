/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "bounded.h"
#include "json.h"

#ifndef BERTH_VERSION
#define BERTH_VERSION "unknown"
#endif

/* Long enough for a busy reader; an answer of our own must not hang either. */
static const uint64_t PRINTING_NS = 1000000000;

void message_put(struct message *message, const char *words) {
  const size_t room = MESSAGE_LIMIT - message->length;
  const size_t length = strnlen(words, room);
  memcpy(message->text + message->length, words, length);
  message->length += length;
  message->text[message->length] = '\0';
}

void message_put_number(struct message *message, unsigned long number) {
  char digits[24];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do {
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  message_put(message, digits + at);
}

void message_put_errno(struct message *message, int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      message_put(message, "permission denied");
      return;
    case ENOSPC:
    case EDQUOT:
      message_put(message, "the disk is full");
      return;
    case EROFS:
      message_put(message, "the file system is read-only");
      return;
    case ENOTDIR:
    case ELOOP:
      message_put(message, "a part of the path is no folder");
      return;
    case ENAMETOOLONG:
      message_put(message, "the path is too long");
      return;
    case EMFILE:
    case ENFILE:
      message_put(message, "too many open files");
      return;
    default:
      message_put(message, "errno ");
      message_put_number(message, (unsigned long)error);
  }
}

static bool print(int fd, const char *bytes, size_t length) {
  return write_all(fd, bytes, length, now_ns() + PRINTING_NS) == BOUNDED_DONE;
}

static size_t append(char *into, size_t length, const char *words) {
  const size_t more = strlen(words);
  memcpy(into + length, words, more);
  return length + more;
}

int answer_error(int code, const struct message *message) {
  struct message number = {.length = 0};
  message_put_number(&number, (unsigned long)code);
  char json[MESSAGE_LIMIT * JSON_GROWTH + 128];
  size_t length = append(json, 0, "{\"cniVersion\":\"1.1.0\",\"code\":");
  length = append(json, length, number.text);
  length = append(json, length, ",\"msg\":\"");
  length += json_escape(message->text, json + length);
  length = append(json, length, "\"}\n");
  print(STDOUT_FILENO, json, length);
  return 1;
}

int answer_version(void) {
  static const char VERSIONS[] =
      "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":"
      "[\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n";
  return print(STDOUT_FILENO, VERSIONS, sizeof VERSIONS - 1) ? 0 : 1;
}

int answer_about(void) {
  /* by its first words an agent tells the plugin from others: MARK of plugin-binary.ts */
  static const char ABOUT[] =
      "CNI berth plugin version " BERTH_VERSION
      "\n"
      "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n";
  print(STDERR_FILENO, ABOUT, sizeof ABOUT - 1);
  return 0;
}
