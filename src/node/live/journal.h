// Journal: a ring buffer of a live run's records, between the engine and their reader.
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"
#include "sim/record.h"

typedef struct Journal {  // one writer at a time, one reader
    Record  *at;          // [mask + 1]
    uint64_t mask;
    _Alignas(64) _Atomic uint64_t tail;  // next to write
    _Alignas(64) _Atomic uint64_t head;  // next to read
    _Atomic uint64_t lost;               // dropped: ring full
} Journal;

MUST_USE Err journal_init(Journal *j, uint32_t room, Arena *a);  // rounded up to 2^n; 0: none
void         journal_put(Journal *j, const Record *r);
// Delivers and removes the records so far, sorted by time. Records written during the call may be
// missing.
MUST_USE Err journal_drain(Journal *j, Arena *scratch, RecordSink to);
