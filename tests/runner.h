// Test runner: the tests of a folder are one program; NAME_test.c is one entry in it, run by its
// name.
#pragma once

typedef int TestMain(void);

// Called before main() by every TEST_MAIN; file is its __FILE__.
void test_register(const char *file, TestMain *run);

// Defines the entry of a test file: TEST_MAIN() { ... return cmocka_run_group_tests(tests, NULL,
// NULL); }
#define TEST_MAIN()                                                                                \
    static int                               test_main(void);                                      \
    __attribute__((constructor)) static void test_main_register(void) {                            \
        test_register(__FILE__, test_main);                                                        \
    }                                                                                              \
    static int test_main(void)
