/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CNI plugin `berth`: carries environment and stdin of one CNI call to the agent of this node and prints what
 * it answers. It decides nothing but what happens when there is no agent: a DEL is spooled and succeeds, an ADD waits
 * for the next one, everything else fails and is tried again by the runtime.
 *
 * BERTH_SOCKET: the agent's socket, instead of /run/berth/agent.sock.
 * BERTH_TIMEOUT_MS: time limit of the call in milliseconds, instead of the verb's own; for tests.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "answer.h"
#include "bounded.h"
#include "exchange.h"
#include "frame.h"
#include "spool.h"

extern char **environ;

/* The whole call must end in this time; each is below what runtimes allow. */
struct verb {
  const char *name;
  unsigned limit_ms;
  bool waits_for_agent;
  int code_without_agent;
  const char *what_next;
};

static const struct verb VERBS[] = {
    {"ADD", 30000, true, CNI_TRY_AGAIN_LATER, "; kubelet tries again by itself, another runtime is to be asked again"},
    {"DEL", 12000, false, CNI_IO_FAILURE, ""},
    {"CHECK", 5000, false, CNI_TRY_AGAIN_LATER, "; check again later"},
    {"STATUS", 1500, false, CNI_PLUGIN_NOT_AVAILABLE, ""},
    {"GC", 25000, false, CNI_TRY_AGAIN_LATER, "; collect again later"},
};

/* Between two looks for an agent that is away: the first, and what they grow to. */
static const uint64_t FIRST_PAUSE_NS = 20000000;
static const uint64_t LONGEST_PAUSE_NS = 160000000;

struct call {
  const struct verb *verb;
  const char *socket_path;
  uint64_t start_ns;
  uint64_t deadline_ns;
  /* How long the agent was waited for in vain; 0: not at all. */
  uint64_t waited_ns;
  pid_t caller;
  struct request request;
};

/* One byte more than a frame may have shows that stdin or an answer is too long. Untouched pages cost nothing. */
static unsigned char request_bytes[REQUEST_CAPACITY + 1];
static unsigned char response_bytes[RESPONSE_CAPACITY + 1];

static const char *variable(const char *name) {
  const char *value = getenv(name);
  return value == NULL ? "" : value;
}

static bool is(const struct call *call, const char *verb) {
  return strcmp(call->verb->name, verb) == 0;
}

static const struct verb *find_verb(const char *name) {
  for (size_t i = 0; i < sizeof VERBS / sizeof VERBS[0]; i++) {
    if (strcmp(VERBS[i].name, name) == 0) return &VERBS[i];
  }
  return NULL;
}

static uint64_t time_limit_ns(const struct verb *verb) {
  const unsigned long override = strtoul(variable("BERTH_TIMEOUT_MS"), NULL, 10);
  const unsigned long ms = override > 0 && override < 600000 ? override : verb->limit_ms;
  return (uint64_t)ms * 1000000u;
}

static int fail(int code, const char *words) {
  struct message message = {.length = 0};
  message_put(&message, words);
  return answer_error(code, &message);
}

static int fail_unknown(const char *command) {
  struct message message = {.length = 0};
  message_put(&message, "unknown CNI_COMMAND: ");
  message_put(&message, command);
  return answer_error(CNI_BAD_ENVIRONMENT, &message);
}

static void put_at(struct message *message, const char *words, const char *path) {
  message_put(message, words);
  message_put(message, path);
}

static void put_why_unanswered(struct message *message, const struct call *call, enum exchange why) {
  const char *const path = call->socket_path;
  switch (why) {
    case EXCHANGE_NO_SOCKET:
      put_at(message, "berth agent is not running (no socket at ", path);
      /* who names no socket may not know that the agent has another one */
      if (*variable("BERTH_SOCKET") == '\0')
        message_put(message, "; in a cluster see DaemonSet berth-agent; else start berthctl up, or set BERTH_SOCKET to agent.sock in its data folder");
      message_put(message, ")");
      return;
    case EXCHANGE_NOBODY_LISTENS:
      put_at(message, "berth agent is not running (nobody listens at ", path);
      message_put(message, ")");
      return;
    case EXCHANGE_FORBIDDEN:
      put_at(message, "berth agent cannot be reached (permission denied at ", path);
      message_put(message, ")");
      return;
    case EXCHANGE_FOREIGN:
      put_at(message, "another user, who is not root, listens at ", path);
      message_put(message, "; run berth's agent as root, or as the user that runs the plugin");
      return;
    case EXCHANGE_PATH_TOO_LONG:
      put_at(message, "berth agent cannot be reached (longer than 107 bytes: ", path);
      message_put(message, ")");
      return;
    case EXCHANGE_TIMED_OUT:
      message_put(message, "berth agent did not answer within ");
      message_put_number(message, (unsigned long)((call->deadline_ns - call->start_ns) / 1000000u));
      message_put(message, " ms");
      return;
    case EXCHANGE_CLOSED_EARLY:
      message_put(message, "berth agent closed the connection before it answered");
      return;
    case EXCHANGE_GARBAGE:
      message_put(message, "berth agent sent an answer that cannot be read; do plugin and agent have one version?");
      return;
    case EXCHANGE_UNREACHABLE:
    case EXCHANGE_ANSWERED:
      put_at(message, "berth agent cannot be reached at ", path);
      return;
  }
}

static int fail_unanswered(const struct call *call, enum exchange why) {
  struct message message = {.length = 0};
  put_why_unanswered(&message, call, why);
  if (call->waited_ns > 0 && exchange_found_no_agent(why)) {
    message_put(&message, ", tried for ");
    message_put_number(&message, (unsigned long)(call->waited_ns / 1000000u));
    message_put(&message, " ms");
  }
  message_put(&message, call->verb->what_next);
  return answer_error(call->verb->code_without_agent, &message);
}

static void put_missing(struct message *message, const char *name) {
  if (*variable(name) != '\0') return;
  if (message->length > 0) message_put(message, ",");
  message_put(message, name);
}

/* What the agent would refuse for good is refused here too and in its words, or the runtime would never learn of it. */
static int refuse_nameless(void) {
  struct message missing = {.length = 0};
  put_missing(&missing, "CNI_CONTAINERID");
  put_missing(&missing, "CNI_IFNAME");
  if (missing.length == 0) return 0;
  put_missing(&missing, "CNI_PATH");
  struct message message = {.length = 0};
  message_put(&message, "required env variables [");
  message_put(&message, missing.text);
  message_put(&message, "] missing");
  return answer_error(CNI_BAD_ENVIRONMENT, &message);
}

/* A DEL that fails keeps a pod Terminating for ever; one that is forgotten leaks the address. */
static int spool(const struct call *call, size_t frame_length, enum exchange why) {
  const int refused = refuse_nameless();
  if (refused != 0) return refused;
  const int error = spool_release(call->socket_path, request_bytes, frame_length);
  if (error == 0) return 0;
  struct message message = {.length = 0};
  put_why_unanswered(&message, call, why);
  message_put(&message, ", and the release cannot be spooled beside its socket: ");
  if (error == SPOOL_OF_OTHERS) message_put(&message, "others may write to its folder");
  else message_put_errno(&message, error);
  return answer_error(CNI_IO_FAILURE, &message);
}

/*
 * An agent with too much to do took nothing in. A DEL then waits on disk; STATUS is no error, for that would make
 * the node NotReady although ADD will soon be served.
 */
static int not_taken(const struct call *call, size_t frame_length, const struct response *response) {
  if (is(call, "DEL")) return spool(call, frame_length, EXCHANGE_CLOSED_EARLY);
  if (is(call, "STATUS")) return 0;
  write_all(STDOUT_FILENO, response->out, response->out_length, call->deadline_ns);
  return 1;
}

/*
 * Prints the answer. Whoever started this program may have been killed meanwhile: then nobody reads the result and
 * the runtime's DEL may be through already, so the agent must not hear the acknowledgement and takes the address back.
 */
static int deliver(const struct call *call, int fd, const struct response *response) {
  const bool acknowledges = is(call, "ADD") && response->exit_status == 0;
  if (acknowledges && getppid() != call->caller) return 1;
  write_all(STDERR_FILENO, response->err, response->err_length, call->deadline_ns);
  if (write_all(STDOUT_FILENO, response->out, response->out_length, call->deadline_ns) != BOUNDED_DONE) return 1;
  if (!acknowledges) return response->exit_status;
  /* Past the deadline the agent may have given the result up already. */
  if (getppid() != call->caller || now_ns() >= call->deadline_ns) return 1;
  return agent_acknowledge(fd) ? 0 : 1;
}

static int take_stdin(struct call *call) {
  struct request *const request = &call->request;
  switch (read_to_end(STDIN_FILENO, request_stdin(request), STDIN_LIMIT, call->deadline_ns, &request->stdin_length)) {
    case BOUNDED_DONE:
      return 0;
    case BOUNDED_TOO_LONG:
      return fail(CNI_DECODING_FAILURE, "the network configuration on stdin is longer than 4 MiB");
    case BOUNDED_TIMED_OUT:
      return fail(CNI_IO_FAILURE, "the network configuration on stdin did not end in time");
    case BOUNDED_FAILED:
      break;
  }
  return fail(CNI_IO_FAILURE, "the network configuration cannot be read from stdin");
}

/* An agent that ends leaves its folder; where there is none it may never come, and nobody shall wait long for it. */
static uint64_t patience_ns(const struct call *call) {
  const uint64_t limit_ns = call->deadline_ns - call->start_ns;
  return agent_was_here(call->socket_path) ? limit_ns / 3 * 2 : limit_ns / 15;
}

/*
 * Whether to ask again, after a pause. An agent that is exchanged is away for seconds, and what it had taken in when it
 * ended the next one takes for the same ADD, by the start of this process. Nobody is asked for a caller that is gone.
 */
static bool wait_for_agent(struct call *call, enum exchange why, uint64_t *pause_ns) {
  if (!call->verb->waits_for_agent || !exchange_found_no_agent(why)) return false;
  const uint64_t patience = patience_ns(call);
  const uint64_t now = now_ns();
  if (now - call->start_ns >= patience) return false;
  call->waited_ns = patience;
  wait_for(-1, 0, now + *pause_ns);
  *pause_ns = *pause_ns * 2 < LONGEST_PAUSE_NS ? *pause_ns * 2 : LONGEST_PAUSE_NS;
  return getppid() == call->caller;
}

/* One request and one answer; `outcome` is that of the connect before. */
static enum exchange ask(struct call *call, int fd, enum exchange outcome, size_t length, struct response *response) {
  if (outcome != EXCHANGE_ANSWERED) return outcome;
  return agent_ask(fd, request_bytes, length, call->deadline_ns, response_bytes, response);
}

static int carry(struct call *call) {
  if (!request_put_environment(&call->request, environ)) {
    return fail(CNI_BAD_ENVIRONMENT, "the CNI variables are longer than 256 KiB together");
  }
  /* Connects before it reads: the agent accepts while the configuration is still coming. */
  int fd = -1;
  enum exchange outcome = agent_connect(call->socket_path, call->deadline_ns, &fd);
  const int unread = take_stdin(call);
  if (unread != 0) return unread;
  const size_t length = request_seal(&call->request, call->start_ns);
  struct response response;
  outcome = ask(call, fd, outcome, length, &response);
  for (uint64_t pause_ns = FIRST_PAUSE_NS; wait_for_agent(call, outcome, &pause_ns);) {
    agent_hang_up(fd);
    outcome = agent_connect(call->socket_path, call->deadline_ns, &fd);
    outcome = ask(call, fd, outcome, length, &response);
  }
  if (outcome != EXCHANGE_ANSWERED)
    return is(call, "DEL") ? spool(call, length, outcome) : fail_unanswered(call, outcome);
  if (response.exit_status == FRAME_NOT_TAKEN) return not_taken(call, length, &response);
  return deliver(call, fd, &response);
}

int main(void) {
  const uint64_t start_ns = now_ns();
  const char *const command = variable("CNI_COMMAND");
  if (*command == '\0') return answer_about();
  if (getauxval(AT_SECURE) != 0) return fail(CNI_BAD_ENVIRONMENT, "berth must not be set-user-ID: chmod u-s,g-s it");
  signal(SIGPIPE, SIG_IGN);
  /* Where huge pages are given to whoever does not ask for one, the first byte of an answer has two megabytes cleared. */
  (void)prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL);
  if (strcmp(command, "VERSION") == 0) return answer_version();
  const struct verb *const verb = find_verb(command);
  if (verb == NULL) return fail_unknown(command);
  const char *const socket_path = variable("BERTH_SOCKET");
  struct call call = {
      .verb = verb,
      .socket_path = *socket_path == '\0' ? "/run/berth/agent.sock" : socket_path,
      .start_ns = start_ns,
      .deadline_ns = start_ns + time_limit_ns(verb),
      .caller = getppid(),
      .request = {.bytes = request_bytes},
  };
  return carry(&call);
}
