/*
 * Making the group of a communicator at a nonblocking call, which must not wait for anybody: Open
 * MPI's progress goes on with it, and the communicator's calls wait meanwhile.
 *
 * Such a call and all that come before the group is there are kept, and made again in their order
 * when it is known whether there will be one (coll_ucg_deferred.h). So processes need not agree
 * from which call on it serves them, however far each of them has come when it is there.
 */
#ifndef MCA_COLL_UCG_BACKGROUND_H
#define MCA_COLL_UCG_BACKGROUND_H

#include "coll_ucg_deferred.h"

/** With the component. */
void coll_ucg_open_background(void);
void coll_ucg_close_background(void);

/**
 * How a nonblocking call of an intra-communicator begins that has no group yet, as far as its
 * thread knows. UCG_OK: there is one now. UCG_INPROGRESS: the call waits (coll_ucg_defer()).
 * UCG_ERR_UNSUPPORTED: it is passed on. Counts the call, and begins with making the group.
 */
ucg_status_t coll_ucg_enter_early(mca_coll_ucg_module_t* module);

/** The same of a call that is passed on in any case, and counts nothing: only after those that
 *  wait, since Open MPI numbers what it is passed. */
ucg_status_t coll_ucg_pass_in_order(mca_coll_ucg_module_t* module);

/** Keeps the call of which UCG_INPROGRESS was said. Returns what its function returns. */
int coll_ucg_defer(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                   const coll_ucg_arguments_t* arguments);

/** Waits until no group is being made in the background, and no call waits for it. */
void coll_ucg_await_background(mca_coll_ucg_module_t* module);

/** Of a communicator that ends, which it does with a group half made at the end of a program that
 *  has left its requests alone. */
void coll_ucg_abandon_background(mca_coll_ucg_module_t* module);

/** Initialises a coll_ucg_arguments_t from variables that are called as its fields are: ten at
 * most. */
#define COLL_UCG_FIELDS(...)                                                                       \
    COLL_UCG_TENTH(__VA_ARGS__, COLL_UCG_FIELDS_10, COLL_UCG_FIELDS_9, COLL_UCG_FIELDS_8,          \
                   COLL_UCG_FIELDS_7, COLL_UCG_FIELDS_6, COLL_UCG_FIELDS_5, COLL_UCG_FIELDS_4,     \
                   COLL_UCG_FIELDS_3, COLL_UCG_FIELDS_2, COLL_UCG_FIELDS_1, 0)                     \
    (__VA_ARGS__)
#define COLL_UCG_TENTH(a, b, c, d, e, f, g, h, i, j, tenth, ...) tenth
#define COLL_UCG_FIELDS_1(a) .a = a
#define COLL_UCG_FIELDS_2(a, ...) .a = a, COLL_UCG_FIELDS_1(__VA_ARGS__)
#define COLL_UCG_FIELDS_3(a, ...) .a = a, COLL_UCG_FIELDS_2(__VA_ARGS__)
#define COLL_UCG_FIELDS_4(a, ...) .a = a, COLL_UCG_FIELDS_3(__VA_ARGS__)
#define COLL_UCG_FIELDS_5(a, ...) .a = a, COLL_UCG_FIELDS_4(__VA_ARGS__)
#define COLL_UCG_FIELDS_6(a, ...) .a = a, COLL_UCG_FIELDS_5(__VA_ARGS__)
#define COLL_UCG_FIELDS_7(a, ...) .a = a, COLL_UCG_FIELDS_6(__VA_ARGS__)
#define COLL_UCG_FIELDS_8(a, ...) .a = a, COLL_UCG_FIELDS_7(__VA_ARGS__)
#define COLL_UCG_FIELDS_9(a, ...) .a = a, COLL_UCG_FIELDS_8(__VA_ARGS__)
#define COLL_UCG_FIELDS_10(a, ...) .a = a, COLL_UCG_FIELDS_9(__VA_ARGS__)

/** How the functions of nonblocking calls end that may wait: as COLL_UCG_LEAVE, or, after
 *  UCG_INPROGRESS, with the call kept. */
#define COLL_UCG_LEAVE_NONBLOCKING(ucg, name, status, ...)                                         \
    do {                                                                                           \
        if (OPAL_UNLIKELY(UCG_INPROGRESS == (status))) {                                           \
            const coll_ucg_arguments_t kept = {COLL_UCG_FIELDS(__VA_ARGS__)};                      \
            return coll_ucg_defer(ucg, COLL_UCG_FN_##name, &kept);                                 \
        }                                                                                          \
        COLL_UCG_LEAVE(ucg, name, status, __VA_ARGS__);                                            \
    } while (0)

#endif
