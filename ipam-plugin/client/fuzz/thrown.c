/* SPDX-License-Identifier: Apache-2.0 */
/* For compilers without libFuzzer, and for `make soak`: the same inputs in every run, as many as the argument says. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const WORDS[] = {
    "BRTH\001",
    "CNI_COMMAND=ADD\n",
    "CNI_COMMAND=x\n",
    "CNI_CONTAINERID=c\n",
    "CNI_ARGS=A=b;C=d\n",
    "CNI_A=",
    "BERTH_SOCKET=a/b\n",
    "BERTH_TIMEOUT_MS=50\n",
    "\"\\\n\xff\xc3\xbc\xe2\x82\xac",
};
enum { LONGEST = 256 };

static uint64_t state = 88172645463325252u;

/* xorshift64 */
static uint32_t draw(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32) % below;
}

static void put(uint8_t *data, size_t size, size_t at, const void *bytes, size_t length) {
  if (at < size) memcpy(data + at, bytes, length < size - at ? length : size - at);
}

static void make(uint8_t *data, size_t size) {
  for (size_t i = 0; i < size; i++) data[i] = (uint8_t)draw(256);
  /* What decides about sizes: rarely megabytes, mostly lengths that may be right. */
  if (size > 8 && draw(100) != 0) data[8] = (uint8_t)(3 + draw(13));
  for (size_t at = 11; at < size && draw(8) != 0;) {
    const char *const word = WORDS[draw(sizeof WORDS / sizeof WORDS[0])];
    put(data, size, at, word, strlen(word));
    at += strlen(word);
  }
  if (draw(4) == 0) put(data, size, 11 + draw(LONGEST), "", 1);
  if (draw(3) == 0) {
    const uint8_t mib = draw(8) == 0 ? 4 << 4 : 0; /* the limit of both together */
    const uint8_t header[] = {'B', 'R', 'T', 'H', 1, data[size / 2], 0, mib, 0, (uint8_t)draw(64),
                              0,   0,   0,   (uint8_t)draw(64)};
    put(data, size, draw(3) == 0 ? 0 : draw(LONGEST), header, sizeof header);
  }
}

int main(int count, char **arguments) {
  const unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 1000000;
  for (unsigned long round = 0; round < rounds; round++) {
    const size_t size = 1 + draw(LONGEST);
    uint8_t *const data = malloc(size); /* exactly as long as it is, so that reading one byte too far is seen */
    if (data == NULL) return 1;
    make(data, size);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
  }
  printf("%lu inputs, nothing found\n", rounds);
  return 0;
}
