/* SPDX-License-Identifier: Apache-2.0 */
/* Releases that wait on disk for an agent: `spool/` beside the socket, replayed by ipam-plugin/agent/background/spool.ts. */
#ifndef BERTH_SPOOL_H
#define BERTH_SPOOL_H

#include <stddef.h>

/*
 * Puts the request frame of a DEL on disk as <monotonic ns, 20 digits>-<pid>.del, complete and synced or not at
 * all. Returns 0, or the errno of what failed, or SPOOL_OF_OTHERS: somebody else could make it a release of another
 * sandbox, or take it away.
 */
#define SPOOL_OF_OTHERS (-1)
int spool_release(const char *socket_path, const unsigned char *frame, size_t length);

#endif
