import { execFileSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'

/** apt waits this long for another apt or dpkg that holds the lock. */
const LOCK_TIMEOUT_SECONDS = 120

/** Debian's packages ask this program whether they may start their services; 101 means no. */
const POLICY = '/usr/sbin/policy-rc.d'
const START_NOTHING = '#!/bin/sh\nexit 101\n'

/** Installs a Debian package, as root, without starting its service. */
export function installPackage(name: string): void {
  process.stderr.write(`Found no ${name}: installing it with apt-get.\n`)
  const isPolicyMissing = !existsSync(POLICY)
  if (isPolicyMissing) writeFileSync(POLICY, START_NOTHING, { mode: 0o755 })
  try {
    runApt('update')
    runApt('install', '-y', '--no-install-recommends', name)
  } finally {
    if (isPolicyMissing) rmSync(POLICY)
  }
}

function runApt(...args: string[]): void {
  execFileSync('apt-get', ['-q', '-o', `DPkg::Lock::Timeout=${LOCK_TIMEOUT_SECONDS}`, ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 2, 2],
  })
}
