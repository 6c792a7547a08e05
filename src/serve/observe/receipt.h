// Receipt: record of one request: how it ended, its times and its cause of lateness. Responses,
// metrics, `why`, logs and statistics are made from it.
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

// Outcome of a request with a deadline; requests without one and malformed ones have none.
typedef enum ReceiptOutcome {
    RECEIPT_OUTCOME_MET,
    RECEIPT_OUTCOME_MISSED,
    RECEIPT_OUTCOME_REJECTED,
    RECEIPT_OUTCOMES,
    RECEIPT_NO_OUTCOME = RECEIPT_OUTCOMES
} ReceiptOutcome;

typedef enum ReceiptProtocol { RECEIPT_REST, RECEIPT_GRPC } ReceiptProtocol;

typedef struct Receipt {
    char            id[RECEIPT_ID];      // the client's, or r-NUMBER: printable
    uint32_t        slot;                // of the model in the registry; UINT32_MAX: unknown model
    const char     *model, *version;     // valid as long as the server
    const char     *behind, *paused_by;  // models that held most cores meanwhile; NULL: none
    ReceiptProtocol protocol;
    ReceiptEnd      end;
    bool            met;    // the response met the deadline
    uint32_t        batch;  // the first dimension of the first input
    TimeNs     began, arrived, decoded, submitted, finished, answered;  // times; 0: not reached
    TimeNs     deadline;                                                // 0: none
    TimeNs     expire;         // end of the client's timeout; 0: none
    TimeNs     loop_delay_ns;  // meanwhile, the server's loop was ready but had no CPU; if missed
    uint64_t   in_bytes, out_bytes;
    LiveTiming timing;                // by the engine; zeroed: it did not get there
    char       cause[RECEIPT_CAUSE];  // one sentence about a miss or failure; "": none
} Receipt;

const char *receipt_end_name(ReceiptEnd e);
const char *receipt_end_about(ReceiptEnd e);
uint32_t    receipt_http_status(ReceiptEnd e);
uint32_t    receipt_grpc_status(ReceiptEnd e);

ReceiptOutcome receipt_outcome(const Receipt *r);
const char    *receipt_outcome_name(ReceiptOutcome o);
ReceiptCause   receipt_cause(const Receipt *r);  // NONE unless missed or rejected
const char    *receipt_cause_name(ReceiptCause c);
const char    *receipt_advice(ReceiptCause c);  // remedy; "" for NONE
TimeNs receipt_latency(const Receipt *r);       // from the last byte of the request to the response
TimeNs receipt_queued(const Receipt *r);        // in the engine, before the first block

// Sets cause: where the time went and which model was in the way; "" if nothing is to say. All
// other fields, `answered` included, are set before.
void receipt_explain(Receipt *r);
