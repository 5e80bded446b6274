/* The table of engine_sources.h. */
	.macro source name
	.section .rodata
11:	.asciz "\name"
12:	.incbin "\name"
13:	.byte 0
	.section .data.rel.ro, "aw"
	.quad 11b, 12b, 13b
	.endm

	.section .data.rel.ro, "aw"
	.balign 8
	.global engine_sources
engine_sources:
	source kernels/engine_verify.c
	source kernels/ref.c
	source kernels/ref_math.c
	source kernels/table.c
	source kernels/ref.h
	source kernels/table.h
	source common/err.h
	.section .data.rel.ro, "aw"
	.quad 0, 0, 0

	.section .note.GNU-stack, "", %progbits
