# SPDX-License-Identifier: BSD-2-Clause
# Macros of tandem's configure.ac.

# TDM_TRY_FLAG(VARIABLE, FLAG)
# Append FLAG to VARIABLE when the compiler of the current language takes it.
# -Werror: clang only warns about a flag that it does not know.
AC_DEFUN([TDM_TRY_FLAG], [
	AC_MSG_CHECKING([whether _AC_LANG compiler accepts $2])
	tdm_saved="$[]_AC_LANG_PREFIX[]FLAGS"
	_AC_LANG_PREFIX[]FLAGS="$tdm_saved -Werror $2"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
		[$1="$$1 $2"
		 AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])])
	_AC_LANG_PREFIX[]FLAGS="$tdm_saved"
])

# TDM_TRY_FLAGS(VARIABLE, FLAGS): the same for each word of FLAGS.
AC_DEFUN([TDM_TRY_FLAGS], [m4_foreach_w([tdm_flag], [$2],
	[TDM_TRY_FLAG([$1], m4_defn([tdm_flag]))])])

# TDM_ENABLE(NAME, HELP): --enable-NAME, default no; sets $enable_NAME.
AC_DEFUN([TDM_ENABLE], [
	AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [],
		[enable_$1=no])
])

# TDM_LTO: link-time optimisation of the module, where gcc offers it with
# objects that can also be linked plainly. Sets TDM_CFLAGS, TDM_MODULE_LDFLAGS.
AC_DEFUN([TDM_LTO], [
	AC_MSG_CHECKING([for link-time optimisation])
	tdm_saved_cflags="$CFLAGS"
	CFLAGS="$CFLAGS -Werror -flto=auto -ffat-lto-objects"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#ifdef __clang__
#error no
#endif
	]], [])],
		[TDM_CFLAGS="$TDM_CFLAGS -flto=auto -ffat-lto-objects"
		 TDM_MODULE_LDFLAGS="$TDM_MODULE_LDFLAGS -flto=auto"
		 AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])])
	CFLAGS="$tdm_saved_cflags"
])
