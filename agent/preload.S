/* The preloaded libraries, so that one file is the whole agent. */
	.section .rodata
	.global linger_so, linger_so_end, scramble_so, scramble_so_end
	.balign 16
linger_so:
	.incbin "preload/linger.so"
linger_so_end:
	.byte 0
	.balign 16
scramble_so:
	.incbin "preload/scramble.so"
scramble_so_end:
	.byte 0

	.section .note.GNU-stack, "", %progbits
