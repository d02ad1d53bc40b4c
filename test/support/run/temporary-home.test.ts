import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { PREFIX } from './temporary-home.js'

const PROGRAM = `
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import useTemporaryHome from '${new URL('temporary-home.ts', import.meta.url)}'
await useTemporaryHome()
console.log(await mkdtemp(tmpdir() + '/left-behind-'))
`
const WAITING = `${PROGRAM}setInterval(() => {}, 1000)`

/** A folder for the homes of this test alone. */
async function newPlace(): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), 'place-'))
  onTestFinished(() => rm(place, { recursive: true, force: true }))
  return place
}

/** Without the cache of tsx. */
async function homesIn(place: string): Promise<string[]> {
  return (await readdir(place)).filter((name) => name.startsWith(PREFIX))
}

interface Started {
  readonly child: ChildProcess
  /** The folder that the program has made and does not remove. */
  readonly folder: string
}

async function start(program: string, place: string): Promise<Started> {
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program]
  const child = spawn(process.execPath, args, {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    env: { ...process.env, TMPDIR: place },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [folder] = await once(createInterface(child.stdout), 'line')
  return { child, folder }
}

it('is where every test of this run makes its folders', () => {
  expect(basename(tmpdir())).toMatch(new RegExp(`^${PREFIX}`))
})

it('is gone after a normal end, and after a kill with the next start', async () => {
  const place = await newPlace()
  const [killed, alive] = await Promise.all([start(WAITING, place), start(WAITING, place)])
  killed.child.kill('SIGKILL')
  await once(killed.child, 'exit')
  expect(existsSync(killed.folder)).toBe(true)

  const next = await start(PROGRAM, place)
  if (next.child.exitCode === null) await once(next.child, 'exit')
  expect(await homesIn(place)).toEqual([basename(dirname(alive.folder))])
  expect(existsSync(alive.folder)).toBe(true)
})
