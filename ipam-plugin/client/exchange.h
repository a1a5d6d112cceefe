/* SPDX-License-Identifier: Apache-2.0 */
/* One request and one answer over the agent's socket. */
#ifndef BERTH_EXCHANGE_H
#define BERTH_EXCHANGE_H

#include "frame.h"

/* Why there is no answer, or that there is one. */
enum exchange {
  EXCHANGE_ANSWERED,
  EXCHANGE_NO_SOCKET,
  EXCHANGE_NOBODY_LISTENS,
  EXCHANGE_FORBIDDEN,
  EXCHANGE_FOREIGN,
  EXCHANGE_PATH_TOO_LONG,
  EXCHANGE_UNREACHABLE,
  EXCHANGE_TIMED_OUT,
  EXCHANGE_CLOSED_EARLY,
  EXCHANGE_GARBAGE
};

/* Connects; EXCHANGE_ANSWERED means connected, and `*fd` is the socket. */
enum exchange agent_connect(const char *path, uint64_t deadline_ns, int *fd);

/* Closes what agent_connect opened, if it did. */
void agent_hang_up(int fd);

/* Whether the folder of the socket is there: an agent makes it. */
bool agent_was_here(const char *path);

/* Whether that is what an agent that ends leaves its clients with, so that the next one may answer. */
bool exchange_found_no_agent(enum exchange outcome);

/* Sends the frame and receives the answer into `bytes` (RESPONSE_CAPACITY + 1), where `response` then points. */
enum exchange agent_ask(int fd, const unsigned char *frame, size_t frame_length, uint64_t deadline_ns,
                        unsigned char *bytes, struct response *response);

/* Tells the agent that the result was printed; false when it can no longer hear it. */
bool agent_acknowledge(int fd);

#endif
