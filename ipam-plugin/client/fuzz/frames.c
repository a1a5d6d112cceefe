/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from outside, thrown at the pure functions: answers of an agent, environments, texts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../frame.h"
#include "../json.h"

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "violated: %s\n", what);
  abort();
}

/* As long as the header says, in a type that cannot overflow. */
static uint64_t announced(const unsigned char *header) {
  uint64_t lengths[2] = {0, 0};
  for (unsigned i = 0; i < 8; i++) lengths[i / 4] = lengths[i / 4] << 8 | header[6 + i];
  return lengths[0] + lengths[1];
}

static void try_response(const unsigned char *data, size_t size) {
  struct response response;
  const enum response_state state = response_parse(data, size, &response);
  if (state == RESPONSE_INCOMPLETE) require(size < RESPONSE_CAPACITY, "a frame that never ends is noticed");
  if (state != RESPONSE_GARBAGE && size >= RESPONSE_HEADER) {
    require(announced(data) <= RESPONSE_LIMIT, "what does not fit is not waited for");
  }
  if (state != RESPONSE_COMPLETE) return;
  require(response.exit_status >= 0 && response.exit_status <= 255, "the status is a byte");
  require(response.out == data + RESPONSE_HEADER, "stdout begins behind the header");
  require(response.err + response.err_length == data + size, "stderr ends with the frame");
  for (size_t less = 1; less <= size && less <= 40; less++) {
    require(response_parse(data, size - less, &response) == RESPONSE_INCOMPLETE, "a part is no frame");
  }
}

/* A whole frame, with stdout up to where the first byte says and stderr from there on. */
static void try_whole_response(const unsigned char *data, size_t size) {
  if (size < 2) return;
  const size_t length = size - 1;
  const size_t out = data[0] % (length + 1);
  unsigned char *const frame = calloc(1, RESPONSE_HEADER + length + 1);
  require(frame != NULL, "there is memory");
  memcpy(frame, "BRTH\001", 5);
  frame[5] = data[1];
  for (unsigned i = 0; i < 4; i++) {
    frame[6 + i] = (unsigned char)(out >> (24 - 8 * i));
    frame[10 + i] = (unsigned char)((length - out) >> (24 - 8 * i));
  }
  memcpy(frame + RESPONSE_HEADER, data + 1, length);
  struct response response;
  const size_t whole = RESPONSE_HEADER + length;
  require(response_parse(frame, whole, &response) == RESPONSE_COMPLETE, "a whole frame is read");
  require(response.exit_status == data[1] && response.out_length == out, "the header is understood");
  require(memcmp(response.out, data + 1, out) == 0, "stdout arrives");
  require(memcmp(response.err, data + 1 + out, length - out) == 0, "stderr arrives");
  require(response_parse(frame, whole + 1, &response) == RESPONSE_GARBAGE, "a byte more is garbage");
  free(frame);
}

/* The lines of the text as variables: exactly those of CNI arrive, in their order, each ended by a zero. */
static void try_environment(char *text) {
  enum { MOST = 64 };
  static unsigned char bytes[REQUEST_CAPACITY + 1];
  char *variables[MOST + 1];
  size_t count = 0;
  for (char *line = text; line != NULL && count < MOST; count++) {
    variables[count] = line;
    line = strchr(line, '\n');
    if (line != NULL) *line++ = '\0';
  }
  variables[count] = NULL;
  struct request request = {.bytes = bytes};
  if (!request_put_environment(&request, variables)) return;
  require(request.environment_length <= ENVIRONMENT_LIMIT, "the environment is bounded");
  const unsigned char *at = bytes + REQUEST_HEADER;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(variables[i], "CNI_", 4) != 0 || strchr(variables[i], '=') == NULL) continue;
    require(strcmp((const char *)at, variables[i]) == 0, "the variable is there");
    at += strlen(variables[i]) + 1;
  }
  require(at == request_stdin(&request), "nothing else is there");
  request.stdin_length = count;
  const size_t length = request_seal(&request, 0x0102030405060708u);
  require(length == REQUEST_HEADER + request.environment_length + count, "the frame has all parts");
  require(memcmp(bytes, "BRTH\001\001\002\003\004\005\006\007\010", 13) == 0, "the header begins as it must");
  require((size_t)bytes[15] << 8 == (request.environment_length & 0xff00u), "lengths are big endian");
  require(bytes[16] == (request.environment_length & 0xffu) && bytes[20] == count, "both of them");
}

static void try_text(const char *text) {
  const size_t length = strlen(text);
  char *const escaped = malloc(length * JSON_GROWTH + 1);
  require(escaped != NULL, "there is memory");
  const size_t written = json_escape(text, escaped);
  require(written <= length * JSON_GROWTH, "a text grows no more than it says");
  for (size_t i = 0; i < written; i++) require((unsigned char)escaped[i] >= 0x20, "no control stays");
  free(escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try_response(data, size);
  try_whole_response(data, size);
  char *const text = malloc(size + 1); /* exactly as long as it is, so that reading one byte too far is seen */
  require(text != NULL, "there is memory");
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';
  try_text(text);
  try_environment(text);
  free(text);
  return 0;
}
