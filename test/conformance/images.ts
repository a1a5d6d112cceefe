// SPDX-License-Identifier: Apache-2.0
// The images that Kubernetes' tests name, made here: agnhost from Kubernetes' own module, busybox, and this host's curl.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { partOf } from "../api/binaries.ts";
import { type ImageStart, packImages } from "../cluster/images.ts";
import { PATH } from "../cluster/machine.ts";
import { run } from "../support/process.ts";

const TESTS = "registry.k8s.io/e2e-test-images";
const AGNHOST: ImageStart = { Entrypoint: ["/agnhost"], Cmd: ["pause"] };
const PAGES = "/usr/share/nginx/html";
/** A web server that serves the same files as nginx does, on the same port. */
const SERVER: ImageStart = { Cmd: ["httpd", "-f", "-p", "80", "-h", PAGES] };

/** As test/utils/image/manifest.go of the version that go.mod pins names them; what other images need is not run. */
export const IMAGES: Readonly<Record<string, ImageStart>> = {
  [`${TESTS}/agnhost:2.63.0`]: AGNHOST,
  [`${TESTS}/agnhost:2.55`]: AGNHOST,
  [`${TESTS}/busybox:1.37.0-1`]: { Cmd: ["sh"] },
  [`${TESTS}/nginx:1.15-4`]: SERVER,
  [`${TESTS}/nginx:1.27-0`]: SERVER,
  "registry.k8s.io/pause:3.10.2": AGNHOST,
};

const USERS = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
const CURL = "/usr/bin/curl";

/** A docker-archive of them all in `folder`, which is empty. */
export async function conformanceImages(folder: string): Promise<string> {
  const archive = join(folder, "images.tar");
  const work = mkdtempSync(join(folder, "layer-"));
  try {
    await packImages(archive, work, IMAGES, fill);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return archive;
}

async function fill(root: string): Promise<void> {
  copyFileSync(partOf("agnhost"), join(root, "agnhost"));
  chmodSync(join(root, "agnhost"), 0o755);
  copyFileSync(join(root, "agnhost"), join(root, "agnhost-2"));
  await must("/bin/busybox", ["chroot", root, "/bin/busybox", "--install", "-s", "/bin"]);
  mkdirSync(join(root, PAGES), { recursive: true });
  writeFileSync(join(root, PAGES, "index.html"), "served\n");
  writeFileSync(join(root, "localhost.crt"), "served\n"); // the readiness probe of the tests of StatefulSets asks for it
  for (const name of ["uploads", "var/run", "root"]) mkdirSync(join(root, name), { recursive: true });
  chmodSync(join(root, "tmp"), 0o1777);
  writeFileSync(join(root, "etc/passwd"), USERS);
  writeFileSync(join(root, "etc/group"), "root:x:0:\nnobody:x:65534:\n");
  symlinkSync(CURL, join(root, "bin/curl")); // all that the images' PATH has
  for (const file of [CURL, ...(await librariesOf(CURL))]) copyInto(root, file);
}

/** Those that it names to the loader, and the loader. */
async function librariesOf(program: string): Promise<readonly string[]> {
  if (!existsSync(program)) throw new Error(`no ${program} (Debian: curl)`);
  const text = await must("ldd", [program]);
  return [...text.matchAll(/(\/\S+) \(0x/g)].map(([, file = ""]) => file);
}

/** At the place where it is here. What is a link here is a file there. */
function copyInto(root: string, file: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  copyFileSync(file, join(root, file));
}

async function must(command: string, args: readonly string[]): Promise<string> {
  const { rc, stdout, stderr } = await run(command, args, { env: { PATH } });
  if (rc !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr.trim()}`);
  return stdout;
}
