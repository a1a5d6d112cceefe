/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and waits that end at a deadline and survive signals and partial transfers. */
#ifndef BERTH_BOUNDED_H
#define BERTH_BOUNDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a transfer ended. BOUNDED_FAILED leaves the reason in errno. */
enum bounded { BOUNDED_DONE, BOUNDED_TIMED_OUT, BOUNDED_TOO_LONG, BOUNDED_FAILED };

/* CLOCK_MONOTONIC in nanoseconds: the clock of Node's process.hrtime.bigint(). */
uint64_t now_ns(void);

/* Waits for `events` (poll) until the deadline; returns what happened, 0 at the deadline, -1 with errno. */
int wait_for(int fd, short events, uint64_t deadline_ns);

/* Reads to the end of the input; BOUNDED_TOO_LONG as soon as more than `limit` bytes came. `into` holds limit + 1. */
enum bounded read_to_end(int fd, unsigned char *into, size_t limit, uint64_t deadline_ns, size_t *length);

/* Writes all of it to a descriptor that may block, without ever blocking past the deadline. */
enum bounded write_all(int fd, const void *bytes, size_t length, uint64_t deadline_ns);

#endif
