/* nn/math/c_locale.h -- gives numbers in texts a decimal point, whatever locale the program has
 * set.
 *
 * A program that uses libhearsay may call setlocale(). In a German locale, strtod() reads "0,9" and
 * printf() writes it. Options would then be refused, and metrics would not be JSON. Every thread of
 * the library calls c_locale_enter() when it starts. A function of the API that reads or writes
 * numbers enters the C locale and leaves it.
 */
#ifndef NN_MATH_C_LOCALE_H
#define NN_MATH_C_LOCALE_H

#include <locale.h>

/* Sets the calling thread's locale to "C" and returns its former one, for c_locale_leave(). O(1). */
locale_t c_locale_enter(void);
void c_locale_leave(const locale_t *former);

/* Gives the thread the locale "C" until the end of the enclosing block. */
#define C_LOCALE_HERE                                                                              \
    __attribute__((cleanup(c_locale_leave), unused)) const locale_t c_locale_former =              \
        c_locale_enter()

#endif
