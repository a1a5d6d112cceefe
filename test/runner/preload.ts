// SPDX-License-Identifier: Apache-2.0
// Loaded before the files of tests (--import).
import "./exits.ts";
import "./only.ts";
import "./rejections.ts";
import "./under-way.ts";
