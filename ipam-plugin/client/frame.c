/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <string.h>

static const unsigned char MAGIC[4] = {'B', 'R', 'T', 'H'};

static void put_big_endian(unsigned char *at, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> (8u * (bytes - 1u - i)));
}

static uint32_t get_u32(const unsigned char *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3];
}

bool request_put_environment(struct request *request, char *const *variables) {
  unsigned char *const start = request->bytes + REQUEST_HEADER;
  size_t used = 0;
  for (; *variables != NULL; variables++) {
    if (strncmp(*variables, "CNI_", 4) != 0 || strchr(*variables, '=') == NULL) continue;
    const size_t size = strlen(*variables) + 1;
    if (size > ENVIRONMENT_LIMIT - used) return false;
    memcpy(start + used, *variables, size);
    used += size;
  }
  request->environment_length = used;
  return true;
}

unsigned char *request_stdin(const struct request *request) {
  return request->bytes + REQUEST_HEADER + request->environment_length;
}

size_t request_seal(const struct request *request, uint64_t start_ns) {
  unsigned char *const at = request->bytes;
  memcpy(at, MAGIC, sizeof MAGIC);
  at[4] = FRAME_VERSION;
  put_big_endian(at + 5, start_ns, 8);
  put_big_endian(at + 13, request->environment_length, 4);
  put_big_endian(at + 17, request->stdin_length, 4);
  return REQUEST_HEADER + request->environment_length + request->stdin_length;
}

enum response_state response_parse(const unsigned char *bytes, size_t length, struct response *response) {
  const size_t seen = length < sizeof MAGIC ? length : sizeof MAGIC;
  if (seen > 0 && memcmp(bytes, MAGIC, seen) != 0) return RESPONSE_GARBAGE;
  if (length > 4 && bytes[4] != FRAME_VERSION) return RESPONSE_GARBAGE;
  if (length < RESPONSE_HEADER) return RESPONSE_INCOMPLETE;
  const uint32_t out = get_u32(bytes + 6);
  const uint32_t err = get_u32(bytes + 10);
  if (out > RESPONSE_LIMIT || err > RESPONSE_LIMIT - out) return RESPONSE_GARBAGE;
  const size_t whole = RESPONSE_HEADER + (size_t)out + (size_t)err;
  if (length < whole) return RESPONSE_INCOMPLETE;
  if (length > whole) return RESPONSE_GARBAGE;
  response->exit_status = bytes[5];
  response->out = bytes + RESPONSE_HEADER;
  response->out_length = out;
  response->err = response->out + out;
  response->err_length = err;
  return RESPONSE_COMPLETE;
}
