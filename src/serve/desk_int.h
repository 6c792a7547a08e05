// The desk inside: an Ask with what only the desk and the engine's threads touch.
#pragma once

#include <stdatomic.h>

#include "net/exchange.h"
#include "serve/desk.h"

typedef enum EntryState {
    ENTRY_FREE,
    ENTRY_OPEN,    // the front decodes, or sends the answer
    ENTRY_SHAPED,  // waits until its shapes are compiled
    ENTRY_ENGINE,  // the engine has it: memory is the workers' until its post arrives
} EntryState;

typedef struct Entry {
    Ask           ask;  // first
    Desk         *desk;
    struct Entry *next;  // free
    EntryState    state;
    bool          gone;  // the front has given it up
    LoopPost      shaped, computed;
    LoopTimer     expiry;  // while it waits for its shapes
    TimeNs        arrival, deadline, expire;
    TimeNs        limit;  // that the client allows; 0: none
    uint32_t      tenant;
    Tensor       *inputs;
    uint32_t     *chosen;  // [n] outputs that are sent
    Tensor       *outputs;
    _Atomic bool  cancelled;
    // By the worker that has the answer.
    LiveEnd       end;
    Outcome       outcome;
    TimeNs        finish;
    LiveTiming    timing;
    bool          no_room;  // for the outputs
    char          failed[256];
    Err           error;  // of what failed
    ExchangeBody *body;   // given back when the engine is done with it
} Entry;

struct Desk {
    DeskOptions o;
    Entry      *entries;  // [n]
    Entry      *free;
    uint32_t    n, busy;
    uint64_t    kept_bytes;  // of arenas of free entries
    uint64_t    next_id;
    bool        expelled;
    const char *names[LIVE_TENANTS];  // of the engine's tenants; NULL: never seen
};

// Copies the chosen outputs out of the engine's memory, on a worker. False: no room.
bool desk_copy(Entry *e, const Tensor *outputs);
// The words for a request that got no answer; sets error and retry_s.
void desk_explain(Entry *e);
// How it went, into the answer's parameters.
void desk_notes(Ask *a);
