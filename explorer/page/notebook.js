/** Begins in a notebook: whoever asks for data gets it from the kernel. */

import "./kernel.js";
import "./main.js";
