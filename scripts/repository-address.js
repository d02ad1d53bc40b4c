const GITHUB = /^(?:github:|(?:git\+)?https:\/\/github\.com\/)?([\w-]+\/[\w.-]+?)(?:\.git)?$/

/** The address of the repository that package.json names, if it is on GitHub, where the workflows run. */
export function repositoryAddress(repository) {
  const [, name] = GITHUB.exec(repository?.url ?? repository) ?? []
  return name === undefined ? undefined : `https://github.com/${name}`
}
