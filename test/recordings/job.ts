import { randomUUID } from 'node:crypto'
import { ask, type Json, type JsonObject, type Recording, type Target } from './replay.js'

interface StagedUser {
  readonly externalUserId: string
  readonly loginMethods: readonly object[]
}

interface Row {
  readonly id: string
  readonly externalUserId: string
  readonly status: string
  readonly errorMessage?: string
}

/** So much of a text was recorded. */
const TEXT_LENGTH = 260
const PAGE = '/bulk-import/users?limit=500'

/** Logins that the recorded request found taken. */
export async function prepare({ group, note, request }: Recording, target: Target): Promise<void> {
  const isTaken = group === 'conflict' || note.includes('held by another account')
  if (!isTaken) return
  const user = request.body as unknown as StagedUser
  const holder = note.startsWith('same id')
    ? { ...user, loginMethods: [passwordless()] }
    : { ...user, externalUserId: randomUUID() }
  await post('/bulk-import/import', holder, target)
}

/** So that no list of rows ends with the first. */
export async function stageOne(target: Target): Promise<void> {
  const user = { externalUserId: randomUUID(), loginMethods: [passwordless()] }
  await post('/bulk-import/users', { users: [user] }, target)
}

/** Stages the bad users with six good ones, runs the job, and says what became of them. */
export async function replayJob({ request }: Recording, target: Target): Promise<JsonObject> {
  const { bad, importedBefore = [] } = request.body as unknown as Record<string, StagedUser[]>
  for (const user of importedBefore) await post('/bulk-import/import', user, target)
  const good = Array.from({ length: 6 }, () => ({
    externalUserId: randomUUID(),
    loginMethods: [passwordless()],
  }))
  await post('/bulk-import/users', { users: [...(bad ?? []), ...good] }, target)
  const error = await target.runJob().then(() => undefined, String)
  const rows = ((await get(PAGE, target)) as unknown as { users: Row[] }).users
  const fates = (users: readonly StagedUser[]) =>
    Promise.all(users.map((user) => fateOf(user, rows, target)))
  const innocent = await fates(good)
  const reply = {
    ...(error !== undefined && { error }),
    bad: await fates(bad ?? []),
    innocentStuckOrFailed: innocent.some(({ row }) => row !== undefined),
    innocentTexts: [...new Set(innocent.flatMap(({ text }) => text ?? []))],
  }
  await post('/bulk-import/users/remove', { ids: rows.map(({ id }) => id) }, target)
  return JSON.parse(JSON.stringify(reply))
}

async function fateOf(
  { externalUserId }: StagedUser,
  rows: readonly Row[],
  target: Target,
): Promise<{ account: boolean; row?: string; text?: string }> {
  const path = `/user/id?userId=${encodeURIComponent(externalUserId)}`
  const { status } = (await get(path, target)) as { status: string }
  const row = rows.find((each) => each.externalUserId === externalUserId)
  return {
    account: status === 'OK',
    ...(row !== undefined && { row: row.status }),
    ...(row?.errorMessage !== undefined && { text: row.errorMessage.slice(0, TEXT_LENGTH) }),
  }
}

function passwordless() {
  return { recipeId: 'passwordless', email: `${randomUUID()}@example.com` }
}

async function post(path: string, body: object, target: Target): Promise<void> {
  await ask({ method: 'POST', path, body: JSON.stringify(body) }, target)
}

async function get(path: string, target: Target): Promise<Json> {
  const response = await ask({ method: 'GET', path }, target)
  if (!('text' in response)) throw new Error(`no reply: ${response.error}`)
  return JSON.parse(response.text)
}
