/** Begins in an exported file: whoever asks for data gets it from the file. */

import "./embedded.js";
import "./main.js";
