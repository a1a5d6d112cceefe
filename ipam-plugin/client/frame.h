/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames between this program and the agent (ipam-plugin/agent/rpc/frame.ts is the other side). Integers are
 * big endian.
 *
 *   request:  "BRTH" | u8 version=1 | u64 startNs | u32 envLen | u32 stdinLen | env (each KEY=VALUE\0) | stdin
 *   response: "BRTH" | u8 version=1 | u8 exitStatus | u32 stdoutLen | u32 stderrLen | stdout | stderr
 *   acknowledgement of a printed ADD result: one byte 0x06
 */
#ifndef BERTH_FRAME_H
#define BERTH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  FRAME_VERSION = 1,
  FRAME_ACKNOWLEDGED = 0x06,
  /* Exit status of an answer that means: the agent is alive and did not look at the request (EX_TEMPFAIL). */
  FRAME_NOT_TAKEN = 75,
  REQUEST_HEADER = 21,
  RESPONSE_HEADER = 14,
  ENVIRONMENT_LIMIT = 256 * 1024,
  STDIN_LIMIT = 4 * 1024 * 1024,
  /* Of stdout and stderr together. */
  RESPONSE_LIMIT = 4 * 1024 * 1024,
  REQUEST_CAPACITY = REQUEST_HEADER + ENVIRONMENT_LIMIT + STDIN_LIMIT,
  RESPONSE_CAPACITY = RESPONSE_HEADER + RESPONSE_LIMIT
};

/* A request as it is built in place: header, environment, stdin, without a copy. */
struct request {
  unsigned char *bytes; /* REQUEST_CAPACITY + 1: the byte more shows that stdin is too long */
  size_t environment_length;
  size_t stdin_length;
};

/* Views into the received bytes. */
struct response {
  int exit_status;
  const unsigned char *out;
  size_t out_length;
  const unsigned char *err;
  size_t err_length;
};

enum response_state { RESPONSE_INCOMPLETE, RESPONSE_COMPLETE, RESPONSE_GARBAGE };

/* Puts every variable whose name begins with CNI_ behind the header; false when they exceed ENVIRONMENT_LIMIT. */
bool request_put_environment(struct request *request, char *const *variables);

/* Where stdin belongs; there is room for STDIN_LIMIT + 1 bytes. */
unsigned char *request_stdin(const struct request *request);

/* Writes the header, when both lengths are known; returns the length of the frame. */
size_t request_seal(const struct request *request, uint64_t start_ns);

/* Pure: what the first `length` bytes of an answer are. Bytes behind a frame make it garbage. */
enum response_state response_parse(const unsigned char *bytes, size_t length, struct response *response);

#endif
