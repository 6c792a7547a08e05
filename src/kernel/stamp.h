// Stamp: names this build of the fast kernels. What was measured with another does not count.
#pragma once

const char *stamp_kernels(void);  // changes with their source, the compiler and its flags
