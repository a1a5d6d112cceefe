/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <string.h>

/* Length of the UTF-8 sequence at `at` (RFC 3629: no overlong forms, no surrogates), 0 when there is none. */
static size_t utf8_length(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (at[0] == 0xe0) low = 0xa0;
  if (at[0] == 0xed) high = 0x9f;
  if (at[0] == 0xf0) low = 0x90;
  if (at[0] == 0xf4) high = 0x8f;
  if (at[1] < low || at[1] > high) return 0;
  const size_t length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
  for (size_t i = 2; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  return length;
}

static size_t escape_ascii(unsigned char byte, char *into) {
  static const char HEX[] = "0123456789abcdef";
  if (byte == '"' || byte == '\\') {
    into[0] = '\\';
    into[1] = (char)byte;
    return 2;
  }
  if (byte >= 0x20) {
    into[0] = (char)byte;
    return 1;
  }
  memcpy(into, "\\u00", 4);
  into[4] = HEX[byte >> 4];
  into[5] = HEX[byte & 15];
  return 6;
}

size_t json_escape(const char *text, char *into) {
  const unsigned char *at = (const unsigned char *)text;
  size_t length = 0;
  while (*at != '\0') {
    const size_t sequence = utf8_length(at);
    if (sequence == 1) {
      length += escape_ascii(*at, into + length);
    } else if (sequence == 0) {
      memcpy(into + length, "\xef\xbf\xbd", 3);
      length += 3;
    } else {
      memcpy(into + length, at, sequence);
      length += sequence;
    }
    at += sequence == 0 ? 1 : sequence;
  }
  return length;
}
