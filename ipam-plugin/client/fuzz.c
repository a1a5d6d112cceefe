/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from outside, thrown at the pure functions: answers of an agent, environments, texts. An entry point for
 * libFuzzer, and a small generator of its own (`make fuzz`) for compilers that have only the sanitizers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "json.h"

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "violated: %s\n", what);
  abort();
}

static void try_response(const unsigned char *data, size_t size) {
  struct response response;
  const enum response_state state = response_parse(data, size, &response);
  if (state != RESPONSE_COMPLETE) return;
  require(response.exit_status >= 0 && response.exit_status <= 255, "the status is a byte");
  require(response.out == data + RESPONSE_HEADER, "stdout begins behind the header");
  require(response.err + response.err_length == data + size, "stderr ends with the frame");
  require(response_parse(data, size - 1, &response) == RESPONSE_INCOMPLETE, "a byte less is no frame");
}

static void try_environment(const char *text) {
  static unsigned char bytes[REQUEST_CAPACITY + 1];
  char *const variables[] = {(char *)(uintptr_t)text, NULL};
  struct request request = {.bytes = bytes};
  const int fits = request_put_environment(&request, variables);
  require(!fits || request.environment_length <= ENVIRONMENT_LIMIT, "the environment is bounded");
  require(request_seal(&request, 0) == REQUEST_HEADER + request.environment_length, "the header counts it");
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
  char *const text = malloc(size + 1); /* exactly as long as it is, so that reading one byte too far is seen */
  require(text != NULL, "there is memory");
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';
  try_environment(text);
  try_text(text);
  free(text);
  return 0;
}

#ifndef LIBFUZZER
static uint64_t state = 88172645463325252u;

/* xorshift64: every run throws the same inputs. */
static uint32_t draw(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32) % below;
}

int main(void) {
  static const unsigned char HALF_RIGHT[RESPONSE_HEADER] = {'B', 'R', 'T', 'H', 1};
  for (unsigned round = 0; round < 1000000; round++) {
    const size_t size = draw(64);
    uint8_t *const data = malloc(size + 1);
    require(data != NULL, "there is memory");
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)draw(256);
    if (draw(4) != 0) memcpy(data, HALF_RIGHT, size < RESPONSE_HEADER ? size : RESPONSE_HEADER);
    if (size >= RESPONSE_HEADER) data[9] = (uint8_t)draw(64);
    if (size >= RESPONSE_HEADER) data[13] = (uint8_t)draw(64);
    if (draw(4) == 0 && size >= 8) memcpy(data, "CNI_A=", 6);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
  }
  puts("1000000 inputs, nothing found");
  return 0;
}
#endif
