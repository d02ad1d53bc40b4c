/** What stands in the doc comments of a program, without their marks. */
export const docCommentsIn = (source: string): string =>
  [...source.matchAll(/\/\*\*(.*?)\*\//gs)]
    .map(([, comment = '']) => comment.replaceAll(/^ *\* ?/gm, ''))
    .join('\n\n')
