// KubeApi: calls to a Kubernetes API server over TLS, many at once, on a Loop (libcurl).
//
// Everything runs on the loop's thread. done() is never called from kube_api_submit; done() and
// line() may submit, cancel and destroy. Files of the configuration (token, certificates) are read
// again each minute and after a 401, which is then tried once more. Proxies of the environment are
// not used, redirections not followed, and what may not be repeated is never sent twice.
#pragma once

#include <jansson.h>

#include "base/hist.h"
#include "kube/kube_config.h"
#include "net/loop.h"

typedef struct KubeApiOptions {  // 0: the default
    uint32_t    connections;     // at once, watches and urgent calls apart: 8
    TimeNs      timeout;         // of a call, from submit on: 10 s
    size_t      body_bytes;      // of a response, decompressed: 64 MiB
    size_t      line_bytes;      // of a line: 4 MiB
    const char *user_agent;      // "cotenant/VERSION"
} KubeApiOptions;

typedef enum KubeOutcome {
    KUBE_DONE,      // a response, whatever its status
    KUBE_NOT_SENT,  // it failed before the request could reach the server: nothing was done
    KUBE_UNKNOWN,   // time-out or reset after it was sent: it may have been done
} KubeOutcome;

typedef struct KubeReply {
    KubeOutcome outcome;
    uint32_t    status;       // of HTTP
    TimeNs      retry_after;  // 0: not said; at most an hour
    const char *body;         // [len], 0-terminated, valid during done()
    size_t      len;
    const char *fault;      // why there is no response; NULL with KUBE_DONE
    bool        too_large;  // the fault is a body or line beyond its limit
    TimeNs      took;
} KubeReply;

typedef struct KubeCall KubeCall;

struct KubeCall {        // the caller's from submit to done
    const char *method;  // "GET", "POST", "PUT", "PATCH", "DELETE"
    const char *path;    // with its query; borrowed until done
    const char *type;    // of the body: "application/json" if NULL
    const char *body;    // NULL: none; borrowed until done
    size_t      len;
    TimeNs      timeout;  // 0: of the options; with line(): none
    bool        urgent;   // does not wait for one of `connections`
    // A line of a response with status 200 at a time instead of a body, newline excluded,
    // 0-terminated; false ends the call with KUBE_DONE. A last line without newline is dropped.
    bool (*line)(void *self, const char *text, size_t len);
    void (*done)(void *self, KubeCall *c, const KubeReply *r);
    void                 *self;
    struct KubeCallState *state;  // private
};

typedef struct KubeApi KubeApi;

// c's strings are borrowed. Fails when a file that c names cannot be read.
MUST_USE Err kube_api_create(KubeApi **out, Loop *l, const KubeConfig *c, const KubeApiOptions *o);
void         kube_api_destroy(KubeApi *a);  // accepts NULL; open calls are dropped without done()
void         kube_api_submit(KubeApi *a, KubeCall *c);
void     kube_api_cancel(KubeApi *a, KubeCall *c);  // without done(); of no open call: no effect
uint32_t kube_api_live(const KubeApi *a);           // calls between submit and done

typedef struct KubeApiCount {  // for rest_client_requests_total and _duration_seconds
    const char *verb;
    uint32_t    code;  // 0: no response
    uint64_t    n;
} KubeApiCount;
// Visits the counts of calls by verb and code.
void kube_api_counts(const KubeApi *a, void (*each)(void *self, const KubeApiCount *c), void *self);
// Durations of the calls of a verb, those with line() apart; NULL: no such verb.
const Hist *kube_api_times(const KubeApi *a, const char *verb);
