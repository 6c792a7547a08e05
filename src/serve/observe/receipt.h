// Receipt: what happened to one request, for its answer, metrics, explanations, logs and traces.
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "node/live/node_live.h"

enum { RECEIPT_ID = 64, RECEIPT_CAUSE = 320 };

typedef enum ReceiptEnd {
#define X(id, name, status, grpc, about) RECEIPT_##id,
#include "serve/observe/receipt_end.def"
#undef X
    RECEIPT_ENDS
} ReceiptEnd;

typedef enum ReceiptCause {
#define X(id, name, about, advice) RECEIPT_CAUSE_##id,
#include "serve/observe/receipt_cause.def"
#undef X
    RECEIPT_CAUSES
} ReceiptCause;

// What a request was to its deadline. Those without one, and those that made no sense, are neither.
typedef enum ReceiptOutcome {
    RECEIPT_OUTCOME_MET,
    RECEIPT_OUTCOME_MISSED,
    RECEIPT_OUTCOME_REJECTED,
    RECEIPT_OUTCOMES,
    RECEIPT_NO_OUTCOME = RECEIPT_OUTCOMES
} ReceiptOutcome;

typedef enum ReceiptProtocol { RECEIPT_REST, RECEIPT_GRPC } ReceiptProtocol;

typedef struct Receipt {
    char            id[RECEIPT_ID];  // the client's, or ours: printable
    uint32_t        slot;  // the model's number in the registry; UINT32_MAX: no model was found
    const char     *model, *version;     // live as long as the server
    const char     *behind, *paused_by;  // timing's tenants by their models' names; NULL: nobody
    ReceiptProtocol protocol;
    ReceiptEnd      end;
    bool            met;    // answered in time
    uint32_t        batch;  // the first dimension of the first input
    TimeNs          began, arrived, decoded, submitted, finished, answered;  // 0: not reached
    TimeNs          deadline;                                                // 0: there was none
    TimeNs          expire;  // the client waits no longer; 0: it did not say
    uint64_t        in_bytes, out_bytes;
    LiveTiming      timing;  // of the engine, from arrived on; zeroed: it never came there
    char            cause[RECEIPT_CAUSE];  // of a miss, one sentence; "" when there was none
} Receipt;

const char *receipt_end_name(ReceiptEnd e);
const char *receipt_end_about(ReceiptEnd e);
uint32_t    receipt_http_status(ReceiptEnd e);  // of HTTP
uint32_t    receipt_grpc_status(ReceiptEnd e);  // of gRPC

ReceiptOutcome receipt_outcome(const Receipt *r);
const char    *receipt_outcome_name(ReceiptOutcome o);
ReceiptCause   receipt_cause(const Receipt *r);  // NONE unless it missed or was rejected
const char    *receipt_cause_name(ReceiptCause c);
const char    *receipt_advice(ReceiptCause c);     // what would help; "" for NONE
TimeNs         receipt_latency(const Receipt *r);  // from its last byte to its answer, or its end
TimeNs         receipt_queued(const Receipt *r);   // in the engine, before its first block

// One sentence about why it was late or had no answer, into cause: where the time went and who was
// in the way; "" when there is nothing to say. All else of r is filled before, answered too.
void receipt_explain(Receipt *r);
