// Profiles: how job classes run on a cluster, from our own tables and from public ones.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "contract/cluster_profile.h"

typedef struct ProfileFile {  // a file of data/profiles, embedded
    const char          *name;
    const unsigned char *bytes;
    size_t               len;
} ProfileFile;

extern const ProfileFile profile_files[];  // ends with an entry of zeros

typedef struct ProfileOptions {  // zeroed: defaults
    const char *set;             // which of Synergy's tables; NULL: models
    const char *gpu_type;        // for Gavel's pairs; NULL: v100
    bool fold;  // rows go to the class that profile_known finds, averaged for Gavel; others are
                // ignored
} ProfileOptions;

// No classes; Synergy's default share of 3 cores and 62.5 GB per GPU.
MUST_USE Err profile_empty(Arena *a, ClusterProfiles *out);

// A file of our own format or a shipped one by name; NULL: default.
MUST_USE Err profile_load(const char *what, Arena *a, ClusterProfiles *out);

// Adds or replaces the classes of a file. The header tells the format: our own, Synergy's two,
// Gavel's two and its JSON, Chronus' JSON; a folder is Pollux'. *p comes from one of the functions
// above.
MUST_USE Err profile_add(ClusterProfiles *p, const char *path, const ProfileOptions *o, Arena *a);
MUST_USE Err profile_add_text(ClusterProfiles *p, const char *name, const char *text, size_t len,
                              const ProfileOptions *o, Arena *a);

typedef struct AllocLevelParams {
    double keep;        // speed of the lowest level, relative to the default
    double step;        // least gain in speed from one level to the next
    double share_keep;  // a level with half a GPU needs this relative speed; above 1: there is none
} AllocLevelParams;

#define ALLOC_LEVEL_PARAMS ((AllocLevelParams){0.9, 0.05, 0.9})

// Allocation levels of a class from its measured points and the default. half_speed: mean rate
// beside a co-runner on its GPU.
AllocLevels alloc_levels_build(const ProfileGrid *speed, double share_cores, double share_gb,
                               double half_speed, const AllocLevelParams *rule);

// Sets the default share: speeds are 1 there, and allocation levels are built anew.
MUST_USE Err profile_set_share(ClusterProfiles *p, double share_cores, double share_gb,
                               const AllocLevelParams *rule);

// By name, ignoring case and punctuation; PROFILE_NONE: none.
uint32_t profile_find(const ClusterProfiles *p, const char *name);
uint32_t profile_find_alias(const ClusterProfiles *p, const char *name);
uint32_t profile_known(const ClusterProfiles *p, const char *name);  // either, also without "(...)"
uint32_t profile_type(const ClusterProfiles *p, const char *name);

// Mean rate beside another class on its GPU, over classes that fit, by weight; 0: none fits.
double profile_mean_corun(const ClusterProfiles *p, uint32_t class_);
