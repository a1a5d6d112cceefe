/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole calls of the client, from main to its exit status, in the world of kernel.c. An input is a few dials, then the
 * environment line by line, stdin and what the agent sends, with a zero between them.
 */
#include <errno.h>
#include <string.h>

#include "../answer.h"
#include "../frame.h"
#include "kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern char **environ;

enum { DIALS = 11, MOST_VARIABLES = 40, EVERYTHING = 255 };
static const uint64_t LONGEST_NS = 602u * 1000000000ull; /* BERTH_TIMEOUT_MS, and a second to say why */
static const char OWN_ERROR[] = "{\"cniVersion\":\"1.1.0\",\"code\":";

struct played {
  const char *verb; /* "" when the environment says it */
  char *variables[MOST_VARIABLES + 5];
  bool named; /* the environment begins with an attachment */
  bool framed;
  bool orphaned; /* whoever started the client is gone before it acknowledges */
  /* The answer, if it is one. */
  bool whole;
  struct response response;
};

static struct played played;
static unsigned char answer_bytes[RESPONSE_CAPACITY + 64];
static unsigned char request[REQUEST_CAPACITY];
static size_t request_length;
static char filler[ENVIRONMENT_LIMIT + 1];

static void turn_dials(const uint8_t *dials) {
  static const char *const COMMANDS[] = {"CNI_COMMAND=ADD",    "CNI_COMMAND=DEL", "CNI_COMMAND=CHECK",
                                         "CNI_COMMAND=STATUS", "CNI_COMMAND=GC",  "CNI_COMMAND=VERSION"};
  static const int DIALLED[] = {0, 0, 0, ENOENT, ENOTDIR, ECONNREFUSED, EACCES, ECONNRESET};
  static const int DISK[] = {0, ENOSPC, EROFS, ENOTDIR, EACCES, ENOENT, EEXIST, EMFILE, EIO};
  world_begin();
  played = (struct played){.verb = dials[0] % 8 < 6 ? COMMANDS[dials[0] % 8] : ""};
  world.connect_error = DIALLED[dials[1] % 8];
  world.knocks = dials[1] >> 3 == 31 ? UINT32_MAX : dials[1] >> 3;
  world.absences = dials[10] % 4 == 3 ? UINT32_MAX : dials[10] % 4;
  world.hang_ups = dials[10] >> 2 & 7;
  world.folder_missing = (dials[10] & 32) != 0;
  world.of_others = (dials[10] & 64) != 0;
  world.piece = dials[2];
  world.interrupted = (unsigned)dials[3] << 1;
  played.named = (dials[0] & 8) != 0;
  world.input.hangs = (dials[4] & 1) != 0;
  world.answer.hangs = (dials[4] & 2) != 0;
  world.deaf = (dials[4] & 4) != 0;
  world.input.breaks = (dials[4] & 32) != 0;
  world.answer.breaks = (dials[4] & 64) != 0;
  played.framed = (dials[4] & 8) != 0;
  world.stuck = (dials[4] & 16) != 0;
  world.readable = dials[5] == EVERYTHING ? SIZE_MAX : dials[5];
  played.orphaned = dials[6] % 8 == 1 || dials[6] % 8 == 2;
  world.caller_sees = played.orphaned ? dials[6] % 8 : UINT32_MAX;
  world.disk_error = DISK[(dials[7] & 15) % (sizeof DISK / sizeof DISK[0])];
  world.disk_works = dials[7] >> 4 < 8 ? 0 : (dials[7] >> 4) - 8;
}

static char *long_variable(const char *name, size_t length) {
  memset(filler, 'f', length);
  memcpy(filler, name, strlen(name));
  filler[length] = '\0';
  return filler;
}

/*
 * A variable of a length that chance does not meet: all variables together a byte less than their limit, just as
 * long, or a byte more; a socket about as long as an address or a path may be; a command longer than a message.
 */
static char *fill(const uint8_t *dials, size_t used) {
  const unsigned kind = dials[8] % 16;
  if (kind <= 2 && used <= ENVIRONMENT_LIMIT - 16) return long_variable("CNI_F=", ENVIRONMENT_LIMIT - used - 2 + kind);
  if (kind == 3) return long_variable("BERTH_SOCKET=/run/", 110 + dials[9] % 16);
  if (kind == 4) return long_variable("BERTH_SOCKET=/run/", 4096 + dials[9] % 16);
  if (kind == 5) return long_variable("CNI_COMMAND=", 440 + dials[9]);
  if (kind != 6) return NULL;
  const size_t length = 4090 + dials[9] % 32;
  memcpy(long_variable("BERTH_SOCKET=/run/", length) + length - 2, "/a", 2);
  return filler;
}

/* Sets the environment and begins the frame that must be sent. */
static void play_environment(const uint8_t *dials, char *text) {
  static char command[32], container[] = "CNI_CONTAINERID=c", interface[] = "CNI_IFNAME=eth0";
  size_t count = 0;
  strcpy(command, played.verb);
  if (*command != '\0') played.variables[count++] = command;
  if (played.named) played.variables[count++] = container;
  if (played.named) played.variables[count++] = interface;
  for (char *line = text; line != NULL && count < MOST_VARIABLES;) {
    played.variables[count++] = line;
    line = strchr(line, '\n');
    if (line != NULL) *line++ = '\0';
  }
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(played.variables[i], "CNI_", 4) == 0) used += strlen(played.variables[i]) + 1;
  }
  char *const more = fill(dials, used);
  if (more != NULL) played.variables[count++] = more;
  request_length = REQUEST_HEADER;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(played.variables[i], "CNI_", 4) != 0 || strchr(played.variables[i], '=') == NULL) continue;
    const size_t size = strlen(played.variables[i]) + 1;
    if (size > REQUEST_HEADER + ENVIRONMENT_LIMIT - request_length) continue; /* it will be refused */
    memcpy(request + request_length, played.variables[i], size);
    request_length += size;
  }
  environ = played.variables;
}

static void put_u32(unsigned char *at, size_t value) {
  for (unsigned i = 0; i < 4; i++) at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void play_stdin(const uint8_t *dials, const unsigned char *bytes, size_t length) {
  world.input.bytes = bytes;
  world.input.length = length;
  const unsigned size = dials[8] >> 4 & 3;
  if (size > 1) world.input.more = STDIN_LIMIT - length + size - 2;
  const size_t environment = request_length - REQUEST_HEADER;
  const size_t whole = length + world.input.more;
  memcpy(request, "BRTH\001\0\0\0\0\x3b\x9a\xcd\xe8", 13); /* the first look at the clock of world_begin */
  put_u32(request + 13, environment);
  put_u32(request + 17, whole);
  if (whole > STDIN_LIMIT) return;
  memcpy(request + request_length, bytes, length);
  memset(request + request_length + length, 'x', world.input.more);
  request_length += whole;
}

/* What the agent sends: as it is, or framed so that it can be read; and as long as it may be, or a byte more. */
static void play_answer(const uint8_t *dials, const unsigned char *bytes, size_t length) {
  const unsigned size = dials[8] >> 6;
  unsigned char *at = answer_bytes;
  if (played.framed && length > 2) {
    const size_t more = size > 1 ? RESPONSE_LIMIT - (length - 2) + size - 2 : 0;
    const size_t body = length - 2 + more;
    const size_t out = bytes[1] == 255 ? body : bytes[1] % (body + 1);
    memcpy(at, "BRTH\001", 5);
    at[5] = bytes[0] >= 128 ? bytes[0] : bytes[0] >= 96 ? FRAME_NOT_TAKEN : 0;
    put_u32(at + 6, out);
    put_u32(at + 10, body - out);
    memcpy(at + RESPONSE_HEADER, bytes + 2, length - 2);
    world.answer.length = RESPONSE_HEADER + length - 2;
    world.answer.more = more;
  } else {
    memcpy(at, bytes, length);
    world.answer.length = length;
    world.answer.more = size > 1 ? RESPONSE_CAPACITY - length : 0;
  }
  memset(at + world.answer.length, 'x', world.answer.more);
  world.answer.bytes = at;
  const size_t whole = world.answer.length + world.answer.more;
  played.whole = response_parse(at, whole, &played.response) == RESPONSE_COMPLETE;
}

static bool is(const char *verb) {
  return strcmp(played.verb, verb) == 0;
}

static void check_request(int status) {
  const size_t heard = world.sent.length < request_length ? world.sent.length : request_length;
  if (heard > 0) require(memcmp(world.sent.bytes, request, heard) == 0, "the agent gets the call as it was made");
  const bool acknowledged = world.sent.length > request_length;
  if (acknowledged) {
    require(world.sent.length == request_length + 1, "one byte acknowledges");
    require(world.sent.bytes[request_length] == FRAME_ACKNOWLEDGED, "and it is that one");
    require(is("CNI_COMMAND=ADD") || *played.verb == '\0', "only an ADD is acknowledged");
    require(status == 0 && played.response.exit_status == 0, "that succeeded");
    require(world.out.length == played.response.out_length, "and was printed");
    require(!played.orphaned, "to somebody");
  }
  if (!is("CNI_COMMAND=ADD") && *played.verb != '\0') require(world.connections <= 1, "only an ADD is asked again");
  if (is("CNI_COMMAND=ADD")) require((status == 0) == acknowledged, "an ADD succeeds when the agent knows");
}

static void check_spooled(int status) {
  const bool taken = played.whole && played.response.exit_status == 0;
  if (is("CNI_COMMAND=DEL") && status == 0) require(world.written || taken, "a DEL that succeeds is not forgotten");
  if (!world.written) return;
  require(is("CNI_COMMAND=DEL") || *played.verb == '\0', "only releases are spooled");
  require(world.file.length == request_length, "the whole of it");
  require(memcmp(world.file.bytes, request, request_length) == 0, "as it was asked for");
  const char *socket = getenv("BERTH_SOCKET");
  if (socket == NULL || *socket == '\0') socket = "/run/berth/agent.sock";
  const char *const slash = strrchr(socket, '/');
  const size_t parent = slash == NULL ? 1 : (size_t)(slash - socket);
  require(memcmp(world.folder, slash == NULL ? "." : socket, parent) == 0, "beside the socket");
  require(strcmp(world.folder + parent, "/spool") == 0, "and nowhere else");
}

static void check_own_error(void) {
  const char *const text = (const char *)world.out.bytes;
  const size_t length = world.out.length;
  require(length > sizeof OWN_ERROR && length < MESSAGE_LIMIT * 6 + 128, "an error is bounded");
  require(memcmp(text, OWN_ERROR, sizeof OWN_ERROR - 1) == 0, "an error is one of CNI");
  require(memcmp(text + length - 3, "\"}\n", 3) == 0, "and ends");
  for (size_t i = 0; i < length - 1; i++) require((unsigned char)text[i] >= 0x20, "on one line");
}

static void check_printed(int status) {
  const size_t length = world.out.length;
  const bool answer = played.whole && length <= played.response.out_length &&
                      memcmp(world.out.bytes, played.response.out, length) == 0;
  if (answer || length >= world.readable) return;
  if (status == 1) check_own_error();
  else require(status == 0 && (length == 0 || is("CNI_COMMAND=VERSION") || *played.verb == '\0'), "who fails says why");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size <= DIALS || size > 8192) return 0;
  turn_dials(data);
  char *const text = malloc(size - DIALS + 2);
  require(text != NULL, "there is memory");
  memcpy(text, data + DIALS, size - DIALS);
  memset(text + size - DIALS, 0, 2);
  unsigned char *const input = (unsigned char *)text + strlen(text) + 1;
  const unsigned char *const end = (unsigned char *)text + size - DIALS + 1;
  const size_t input_length = strnlen((char *)input, (size_t)(end - input));
  const unsigned char *const answer = input + input_length + (input + input_length < end);
  char **const before = environ;
  play_environment(data, text);
  play_stdin(data, input, input_length);
  play_answer(data, answer, (size_t)(end - answer));
  const int status = berth_main();
  require(status >= 0 && status <= 255, "the exit status is a byte");
  check_request(status);
  check_spooled(status);
  check_printed(status);
  require(world.now - 1000000000u < LONGEST_NS, "the call ends in time");
  environ = before;
  free(text);
  return 0;
}
