#include "serve/receipt_log.h"

static LogLevel level_of(const Receipt *r) {
    if (r->end == RECEIPT_FAILED || r->end == RECEIPT_STUCK) return LOG_WARN;
    return r->end == RECEIPT_OK && receipt_cause(r) == RECEIPT_CAUSE_NONE ? LOG_DEBUG : LOG_INFO;
}

void receipt_log(const Receipt *r, const Log *log) {
    LogLevel level = level_of(r);
    if (level < log->least) return;
    log_with(log, level, "request", log_text("id", r->id),
             log_text("model", r->model != NULL ? r->model : ""),
             log_text("version", r->version != NULL ? r->version : ""),
             log_text("end", receipt_end_name(r->end)), log_int("status", receipt_status(r->end)),
             log_text("outcome", receipt_outcome_name(receipt_outcome(r))),
             log_real("ms", (double)receipt_latency(r) / 1e6),
             log_real("queue_ms", (double)receipt_queued(r) / 1e6),
             log_real("compute_ms", (double)r->timing.compute_ns / 1e6),
             log_text("cause", receipt_cause_name(receipt_cause(r))), log_text("why", r->cause));
}
