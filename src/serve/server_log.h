// Server log: the lines about a server's life cycle: start, models, ready.
#pragma once

#include "base/cpu.h"
#include "base/log.h"
#include "serve/models/registry.h"

double log_seconds(TimeNs ns);  // to the millisecond
// The first line, before anything takes time.
void server_log_starting(const Log *log, const Config *c, const CpuBudget *b);
void server_log_warnings(const Log *log, const Config *c);
// A model's state has changed. `cores`: of the server.
void server_log_model(const Log *log, const ModelInfo *m, uint32_t cores);
// A search for faster kernel versions beside serving has ended.
void server_log_tuned(const Log *log, const ModelInfo *m, const ModelTuned *t);
