// Receipt: what happened to one request, for its answer, metrics, explanations, logs and traces.
#pragma once

#include <stdint.h>

#include "base/time.h"
#include "node/node_live.h"

enum { RECEIPT_ID = 64, RECEIPT_CAUSE = 160 };

typedef enum ReceiptEnd {
#define X(id, name, status, grpc, about) RECEIPT_##id,
#include "serve/receipt_end.def"
#undef X
    RECEIPT_ENDS
} ReceiptEnd;

typedef enum ReceiptProtocol { RECEIPT_REST, RECEIPT_GRPC } ReceiptProtocol;

typedef struct Receipt {
    char            id[RECEIPT_ID];  // the client's, or ours: printable
    uint32_t        seat;  // the model's number in the fleet; UINT32_MAX: no model was found
    const char     *model, *version;  // live as long as the server
    ReceiptProtocol protocol;
    ReceiptEnd      end;
    bool            met;    // answered in time
    uint32_t        batch;  // the first dimension of the first input
    TimeNs          began, arrived, decoded, submitted, finished, answered;  // 0: not reached
    TimeNs          deadline;                                                // 0: there was none
    uint64_t        in_bytes, out_bytes;
    LiveTiming      timing;                // of the engine; zeroed when it never came there
    const char     *behind, *paused_by;    // names of timing\'s; NULL: none
    char            cause[RECEIPT_CAUSE];  // of a miss, one sentence; "" when there was none
} Receipt;

const char *receipt_end_name(ReceiptEnd e);
const char *receipt_end_about(ReceiptEnd e);
uint32_t    receipt_status(ReceiptEnd e);  // of HTTP
uint32_t    receipt_grpc(ReceiptEnd e);    // of gRPC

// One sentence about why it was late or had no answer, into cause.
void receipt_explain(Receipt *r);
