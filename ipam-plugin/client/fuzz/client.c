/* SPDX-License-Identifier: Apache-2.0 */
/* The client as it is, on the system of kernel.h: every header first, so that only the calls get other names. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/un.h>

#include "kernel.h"

#define main berth_main
#define clock_gettime fuzz_clock_gettime
#define poll fuzz_poll
#define read fuzz_read
#define write fuzz_write
#define socket fuzz_socket
#define connect fuzz_connect
#define getsockopt fuzz_getsockopt
#define send fuzz_send
#define recv fuzz_recv
#define fcntl fuzz_fcntl
#define access fuzz_access
#define close fuzz_close
#define getppid fuzz_getppid
#define mkdir fuzz_mkdir
#define open fuzz_open
#define openat fuzz_openat
#define fsync fuzz_fsync
#define renameat fuzz_renameat
#define unlinkat fuzz_unlinkat
/* the structure keeps its name */
#define fstat(folder, found) fuzz_fstat(folder, found)

#include "../answer.c"
#include "../bounded.c"
#include "../exchange.c"
#include "../frame.c"
#include "../json.c"
#include "../main.c"
#include "../spool.c"
