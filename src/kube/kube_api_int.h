// Private to KubeApi: kube_api.c has calls and their ends, kube_transfer.c what libcurl needs.
#pragma once

#include <curl/curl.h>

#include "kube/kube_api.h"
#include "kube/kube_credentials.h"

enum { KUBE_VERBS = 5, KUBE_COUNTS = 256, KUBE_IDLE = 16 };

typedef struct KubeCallState KubeCallState;

struct KubeCallState {
    KubeApi           *api;
    KubeCall          *call;
    CURL              *easy;  // NULL: waits for a connection
    struct curl_slist *headers;
    LoopTimer          deadline;
    TimeNs             submitted;
    char              *data;  // 0-terminated: the response, or what of its lines is not delivered
    size_t             len, room, header_bytes;
    uint32_t           sends;    // times that libcurl began to send the request
    const char        *broken;   // the limit that the response exceeded; NULL: none
    bool               counted;  // it is one of `connections`
    bool               waits, again, fresh, gone;
    char               error[CURL_ERROR_SIZE], why[CURL_ERROR_SIZE + 128];
    KubeCallState     *prev, *next;  // all of the api
    KubeCallState     *prev_waiting, *next_waiting, *next_fresh, *next_gone;
};

struct KubeApi {
    Loop              *loop;
    KubeConfig         config;
    KubeApiOptions     options;
    KubeCredentials    credentials;
    CURLM             *multi;
    CURL              *idle[KUBE_IDLE];
    uint32_t           n_idle;
    char              *base;                // URL before a call's path
    char              *host;                // "Host: ..." beside a server name; NULL: none
    struct curl_slist *connect_to;          // with a server name
    LoopTimer          timer, kick;         // always armed, so that arming them cannot fail
    KubeCallState     *first, *last;        // all calls
    KubeCallState     *waits, *waits_last;  // for a connection
    KubeCallState     *fresh;               // with lines to deliver
    KubeCallState     *trash;               // ended within a callback
    uint32_t           live, running;
    uint32_t           busy;  // callbacks on the stack
    bool               dead;  // destroyed within a callback
    KubeApiCount       counts[KUBE_COUNTS];
    uint32_t           n_counts;
    Hist              *times;  // [KUBE_VERBS]
};

// kube_transfer.c
MUST_USE Err kube_transfer_base(KubeApi *a);         // base, host, connect_to
MUST_USE Err kube_transfer_begin(KubeCallState *s);  // sets s->easy and lets it run
void         kube_transfer_end(KubeCallState *s);    // may be called again
