// Tags the version of package.json and pushes the tag, on which the workflow publishes it:
// npm run release [-- --dry-run]
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { repositoryAddress } from './repository-address.js'

const options = process.argv.slice(2)
if (options.some((one) => one !== '--dry-run')) {
  console.error('Usage: npm run release [-- --dry-run]')
  process.exit(2)
}

const RELEASE_TAG = /^v\d+\.\d+\.\d+$/

const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim()
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))
const { version, repository } = readJson('package.json')
const tag = `v${version}`

const entry = `## [${version}] - `
const checks = [
  [
    repositoryAddress(repository) !== undefined,
    'package.json has no repository such as "github:owner/name": npm needs it for the provenance.',
  ],
  [
    git('status', '--porcelain') === '',
    'There are changes without a commit: commit or stash them.',
  ],
  [
    readFileSync('CHANGELOG.md', 'utf8').includes(`\n${entry}`),
    `CHANGELOG.md has no entry for this version: add "${entry}<date>".`,
  ],
  [
    readJson('package-lock.json').version === version,
    `package-lock.json has another version: run npm version ${version} --no-git-tag-version --allow-same-version.`,
  ],
  [git('tag', '--list', tag) === '', `The tag ${tag} exists: set the next version.`],
]

const lastTag = git('tag', '--merged', 'HEAD', '--sort', '-v:refname')
  .split('\n')
  .find((one) => RELEASE_TAG.test(one))
if (lastTag !== undefined) checks.push(declarationsCheck(lastTag))

const faults = checks.filter(([passes]) => !passes).map(([, fault]) => fault)
for (const fault of faults) console.error(fault)
if (faults.length > 0) process.exit(1)

const commands = [
  ['tag', tag],
  ['push', 'origin', tag],
]
for (const command of commands) {
  console.log(`git ${command.join(' ')}`)
  if (options.length === 0) git(...command)
}

/** Compares the API reports with those of the last release: docs/versioning.md. */
function declarationsCheck(last) {
  const changedLines = git('diff', '--numstat', '--no-renames', last, 'HEAD', '--', 'api')
  const counts = changedLines.split('\n').map((line) => line.split('\t').map(Number))
  const isAdded = counts.some(([added]) => added > 0)
  const isRemoved = counts.some(([, removed]) => removed > 0)
  const [lastMajor, lastMinor] = numbersOf(last)
  const [major, minor] = numbersOf(tag)
  const isMajor = major > lastMajor
  const isMinor = isMajor || minor > lastMinor
  const needsMajor = isRemoved && lastMajor > 0
  const isAllowed = needsMajor ? isMajor : isMinor || !(isAdded || isRemoved)
  return [
    isAllowed,
    `Public declarations ${isRemoved ? 'are removed or changed' : 'are added'} since ${last}: a ` +
      `${needsMajor ? 'major' : 'minor'} version is needed. See git diff ${last} -- api.`,
  ]
}

function numbersOf(releaseTag) {
  return releaseTag.slice(1).split('.').map(Number)
}
