/* The stand-in engine (simulated): this file stands where an engine has its own. */
