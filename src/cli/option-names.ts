/** By the name of an option of the package, the option of the command that sets it. */
export type OptionNames = ReadonlyMap<string, string>

/** A message of the package, with the options of the command instead of its own. */
export const withOptionNames = (message: string, names: OptionNames): string =>
  message
    .replace(/^\w+ options: /, '')
    .replaceAll(/(?<![\w-])[a-zA-Z]+\b/g, (word) => names.get(word) ?? word)
