// ProfileStore: layer profiles on disk (SQLite). Losing it costs tuning time; compilation never
// fails by it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "compile/layer_profile.h"
#include "kernel/isa.h"

struct sqlite3;

// One thread at a time uses a store; any number of threads and processes may open their own.
typedef struct ProfileStore {
    struct sqlite3 *db;  // NULL: not usable; reads find nothing, writes are dropped
    char            path[4096];
    char            machine[512], kernels[64];  // keys: this CPU, this build of the kernels
    char            why[512];                   // last error; "" if none
    bool            read_only;
} ProfileStore;

// path NULL: in the user's cache directory. A file that does not exist or is empty becomes a store;
// any other file that is not a store of this version is left as it is. Cannot fail: an unusable
// store behaves like an empty one.
void profile_store_open(ProfileStore *s, const char *path, const Cpu *cpu, const Isa *isa);
void profile_store_close(ProfileStore *s);
// Whether a path that the user named can be a store, without creating it. ERR_CONFIG: it is
// something else, is damaged, or cannot be created there. A store in use or on a full disk is fine.
MUST_USE Err profile_store_check(const char *path);

// `layer` is a Step's key: kind, shape and whatever else its time depends on.
bool profile_store_get(ProfileStore *s, const char *layer, Arena *a, LayerProfile *out);
bool profile_store_put(ProfileStore *s, const char *layer,
                       const LayerProfile *p);  // replaces; false: not stored, see `why`
