/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BERTH_JSON_H
#define BERTH_JSON_H

#include <stddef.h>

/* The most bytes that one byte of a text becomes inside a JSON string: \u0000. */
enum { JSON_GROWTH = 6 };

/*
 * Pure: writes `text` as the inside of a JSON string and returns the length, at most JSON_GROWTH times the text's.
 * Escapes quotes, backslashes and controls; a byte that is not part of valid UTF-8 becomes U+FFFD.
 */
size_t json_escape(const char *text, char *into);

#endif
