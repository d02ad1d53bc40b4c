import { beforeEach, expect, it, vi } from 'vitest'
import { playSteps } from '../../example-app/story/play-steps.js'
import type { Outcome, Step } from '../../example-app/story/step.js'
import { createTerminal } from '../../example-app/story/terminal.js'

const steps = ['a read', 'a longer step'].map(
  (title): Step => ({
    title,
    request: 'GET /',
    expected: { status: 200 },
    send: () => Promise.reject(new Error('not called')),
  }),
)
const GOOD: Outcome = { status: 200, seen: 'accepted', faults: [] }
const BAD: Outcome = { status: undefined, seen: 'nothing', faults: ['status: expected 200'] }

let lines: string[] = []

beforeEach(() => {
  lines = []
  vi.spyOn(console, 'log').mockImplementation((line: string) => {
    lines.push(line)
  })
})

it('shows the steps as aligned columns and counts those that went as expected', async () => {
  expect(await playSteps(steps, createTerminal(steps), async () => GOOD)).toBe(true)
  expect(lines).toEqual([
    '    step           request  status  the operator saw',
    'ok  a read         GET /    200     accepted',
    'ok  a longer step  GET /    200     accepted',
    '',
    '2 of 2 steps went as expected',
  ])
})

it('says which step did not go as expected, and why, and goes on', async () => {
  const play = async (step: Step) => (step === steps[0] ? BAD : GOOD)
  expect(await playSteps(steps, createTerminal(steps), play)).toBe(false)
  expect(lines.slice(1)).toEqual([
    'NO  a read         GET /    ---     nothing',
    '    NOT AS EXPECTED: status: expected 200',
    'ok  a longer step  GET /    200     accepted',
    '',
    '1 of 2 steps went as expected',
  ])
})

it.each([
  ['a terminal', true, '', true],
  ['a terminal of somebody who objects', true, '1', false],
  ['a file', false, '', false],
])('uses colours for %s: %s, NO_COLOR=%j', (_, isTty, noColor, isColoured) => {
  const before = process.stdout.isTTY
  vi.stubEnv('NO_COLOR', noColor)
  process.stdout.isTTY = isTty
  try {
    createTerminal(steps).heading('a title')
  } finally {
    process.stdout.isTTY = before
    vi.unstubAllEnvs()
  }
  expect(lines[0]?.includes('\u001b[')).toBe(isColoured)
})
