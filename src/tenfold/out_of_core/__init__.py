"""Out of core: functions of arrays that do not fit in memory, chunk by chunk (`tn.blockwise`)."""
