// Synth: traces made up after published statistics of real clusters; the same seed, the same trace.
#pragma once

#include "base/rng.h"
#include "base/settings.h"
#include "cluster/job.h"

typedef struct SynthSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
#include "cluster/trace/synth.def"
#undef X
} SynthSettings;

typedef struct SynthFile {  // data/traces, as built in: settings of traces worth a name
    const char *name, *text;
} SynthFile;

extern const SynthFile synth_files[];  // ends with a name of NULL

Settings synth_settings(SynthSettings *s, Arena *a);

// Defaults, then those of a built-in name or of a YAML file; NULL: defaults alone.
MUST_USE Err synth_load(const char *what, Arena *a, SynthSettings *out);
MUST_USE Err synth_make(const SynthSettings *s, Rng rng, Arena *a, JobList *out);
